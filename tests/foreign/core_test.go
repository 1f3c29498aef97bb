package foreign

import (
	"encoding/json"
	"testing"

	"github.com/heddle-project/heddle/tests/softgpu"
)

// TestCUDACore runs the library that sits on cuda-bindings: memory pools, pinned memory, the extended launch,
// graphs with user objects.
func TestCUDACore(t *testing.T) {
	n := newNode(t, softgpu.Options{GPUs: []string{"B200"}})
	out, err := script(t, "core_client.py", n.Build(), n.Env()).Output()
	if err != nil {
		t.Fatalf("client: %v\nstubs called: %v", err, n.StubCalls())
	}
	var got struct {
		Name  string
		UUID  string
		SMs   int
		Wrong int     `json:"wrong_elements"`
		Ms    float64 `json:"elapsed_ms"`
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	gpu := n.GPUs()[0]
	if got.Name != gpu.Name || "GPU-"+got.UUID != gpu.UUID || got.SMs != 148 {
		t.Errorf("the client saw %+v, the device is %+v", got, gpu)
	}
	if got.Wrong != 0 || got.Ms <= 0 {
		t.Errorf("%d wrong elements after %g ms", got.Wrong, got.Ms)
	}
	if calls := n.Calls(); calls.Launches == 0 || calls.Graphs != 3 || calls.Opaque != 0 || calls.Stubs != 0 {
		t.Errorf("the client made %+v\nstubs called: %v", calls, n.StubCalls())
	}
	if err := n.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if used := n.GPUs()[0].UsedBytes; used != 0 {
		t.Errorf("%d bytes are still in use", used)
	}
}
