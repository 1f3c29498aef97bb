package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
)

// deviceNames are the short names of devices by UUID: the index, with the profile behind it for a
// MIG device. They are for reading; what is stored and passed on is always the UUID.
type deviceNames map[string]string

func nameDevices(devices []*heddlev1.Device) deviceNames {
	names := make(deviceNames)
	for _, d := range devices {
		index := strconv.FormatUint(uint64(d.GetIndex()), 10)
		names[d.GetUuid()] = index
		for _, m := range d.GetMigDevices() {
			names[m.GetUuid()] = index + "/" + m.GetProfile()
		}
	}
	return names
}

// shortUUID is enough of a UUID to tell devices apart where there is no better name.
func shortUUID(uuid string) string {
	const keep = len("GPU-01234567")
	if len(uuid) <= keep {
		return uuid
	}
	return uuid[:keep]
}

// resolveDevice finds the UUID that a person means by an index, a UUID or the unique beginning of one.
func resolveDevice(devices []*heddlev1.Device, want string) (string, error) {
	if index, err := strconv.ParseUint(want, 10, 32); err == nil {
		for _, d := range devices {
			if uint64(d.GetIndex()) == index {
				return d.GetUuid(), nil
			}
		}
		return "", fmt.Errorf("no device %s on this node (heddle gpus lists them)", want)
	}
	var found []string
	for _, uuid := range deviceUUIDs(devices) {
		if uuid == want {
			return uuid, nil
		}
		if strings.HasPrefix(uuid, want) {
			found = append(found, uuid)
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("no device %s on this node (heddle gpus lists them)", want)
	case 1:
		return found[0], nil
	default:
		return "", fmt.Errorf("device %s is not unique: %s", want, strings.Join(found, ", "))
	}
}

func deviceUUIDs(devices []*heddlev1.Device) []string {
	var uuids []string
	for _, d := range devices {
		uuids = append(uuids, d.GetUuid())
		for _, m := range d.GetMigDevices() {
			uuids = append(uuids, m.GetUuid())
		}
	}
	return uuids
}

// checkDeviceSyntax accepts what CUDA_VISIBLE_DEVICES would: an index or a UUID.
func checkDeviceSyntax(want string) error {
	_, err := strconv.ParseUint(want, 10, 32)
	if err == nil || strings.HasPrefix(want, "GPU-") || strings.HasPrefix(want, "MIG-") {
		return nil
	}
	return errors.New("not a device: an index, or a UUID that begins with GPU- or MIG-")
}
