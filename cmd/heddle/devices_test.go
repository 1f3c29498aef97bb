package main

import "testing"

func TestDeviceByIndexOrUUID(t *testing.T) {
	tests := []struct {
		want, uuid, err string
	}{
		{"0", uuidA, ""},
		{"1", uuidB, ""},
		{uuidB, uuidB, ""},
		{"GPU-7", uuidB, ""},
		{uuidMIG, uuidMIG, ""},
		{"GPU-", "", "device GPU- is not unique: " + uuidB + ", " + uuidA},
		{"2", "", "no device 2 on this node (heddle gpus lists them)"},
		{"MIG-ff", "", "no device MIG-ff on this node (heddle gpus lists them)"},
	}
	for _, tt := range tests {
		uuid, err := resolveDevice(fakeDevices(), tt.want)
		message := ""
		if err != nil {
			message = err.Error()
		}
		if uuid != tt.uuid || message != tt.err {
			t.Errorf("%s: %q, %q", tt.want, uuid, message)
		}
	}
}
