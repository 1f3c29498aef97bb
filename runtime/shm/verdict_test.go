package shm

import (
	"sync/atomic"
	"testing"

	"github.com/heddle-project/heddle/runtime/abi"
)

// gateWords reads the process's gate word and that of slot 2.
func gateWords(v *Verdict) [2]uint32 {
	return [2]uint32{atomic.LoadUint32(&v.seg.Process.Gate), atomic.LoadUint32(&v.seg.Devices[2].Gate)}
}

func TestGateWordsSayWhetherSomethingIsMeasured(t *testing.T) {
	v, err := NewVerdict(1, ClockParams{}, abi.FailOpen)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	publish := func(gate uint32) {
		t.Helper()
		if err := v.Publish(2, &DeviceVerdict{Gate: gate, Weight: 1}); err != nil {
			t.Fatal(err)
		}
	}
	steps := []struct {
		name string
		do   func()
		want [2]uint32
	}{
		{"measuring before a slot is bound", func() { v.PublishMeasure(1, 0) }, [2]uint32{abi.GateMeasure, 0}},
		{"a verdict while measuring", func() { publish(0) }, [2]uint32{abi.GateMeasure, abi.GateMeasure}},
		{"another verdict while measuring", func() { publish(abi.GateYield) },
			[2]uint32{abi.GateMeasure | abi.GateYield, abi.GateMeasure | abi.GateYield}},
		{"measuring ends", func() { v.PublishMeasure(0, 0) }, [2]uint32{abi.GateYield, abi.GateYield}},
		{"a timeline", func() { v.PublishMeasure(0, 3) },
			[2]uint32{abi.GateMeasure | abi.GateYield, abi.GateMeasure | abi.GateYield}},
	}
	for _, step := range steps {
		step.do()
		if got := gateWords(v); got != step.want {
			t.Errorf("%s: gate words %v, want %v", step.name, got, step.want)
		}
	}
}
