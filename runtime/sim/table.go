package sim

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// Bounds of a table: beyond them it is a mistake, or an attack on the reader's memory.
const (
	kernelsMax = 1 << 16
	smsMax     = 1 << 20
)

// ReadTable reads the kernels of a workload from the player's CSV format: a header that names at
// least Name, Profile (1 compute bound, 0 memory bound, -1 unknown), SM_usage and Duration in
// nanoseconds, and one line per launch. name is for messages.
func ReadTable(name string, from io.Reader) ([]Kernel, error) {
	r := csv.NewReader(from)
	r.ReuseRecord = true
	header, err := r.Read()
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s: no header", name)
		}
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	columns := map[string]int{}
	for i, h := range header {
		columns[h] = i
	}
	for _, want := range []string{"Name", "Profile", "SM_usage", "Duration"} {
		if _, ok := columns[want]; !ok {
			return nil, fmt.Errorf("%s:1: no column %s", name, want)
		}
	}
	var kernels []Kernel
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		line, _ := r.FieldPos(0)
		if len(kernels) == kernelsMax {
			return nil, fmt.Errorf("%s:%d: more than %d kernels", name, line, kernelsMax)
		}
		k, err := readKernel(row, columns)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, line, err)
		}
		kernels = append(kernels, k)
	}
	if len(kernels) == 0 {
		return nil, fmt.Errorf("%s: no kernels", name)
	}
	return kernels, nil
}

func readKernel(row []string, columns map[string]int) (Kernel, error) {
	sms, err := strconv.Atoi(row[columns["SM_usage"]])
	if err != nil || sms < 1 || sms > smsMax {
		return Kernel{}, fmt.Errorf("column SM_usage: %q is not a number from 1 to %d", row[columns["SM_usage"]], smsMax)
	}
	ns, err := strconv.ParseFloat(row[columns["Duration"]], 64)
	if err != nil || !(ns >= 0 && ns <= 1e12) {
		return Kernel{}, fmt.Errorf("column Duration: %q is not a number of nanoseconds up to 1000 s", row[columns["Duration"]])
	}
	k := Kernel{Name: row[columns["Name"]], Time: time.Duration(ns), SMs: sms}
	// The table does not say how much bandwidth a kernel uses; these are the player's figures.
	switch profile := row[columns["Profile"]]; profile {
	case "1":
		k.DRAM = 0.2
	case "0":
		k.DRAM = 0.9
	case "-1":
		k.DRAM = 0.5
	default:
		return Kernel{}, fmt.Errorf("column Profile: %q is not 1, 0 or -1", profile)
	}
	return k, nil
}
