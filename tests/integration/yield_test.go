package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heddle-project/heddle/tests/node"
)

// heavy lets a client say by its weight what it keeps at its yield points.
const heavy = patient + "[scheduling]\nweight = 10000\n"

// serviceAndTraining brings up a node with a high client and a low one of these weights.
func serviceAndTraining(t *testing.T, serviceWeight, trainingWeight string) (n *node.Node, service, training *node.Client) {
	t.Helper()
	n, _ = start(t, node.Options{Config: heavy})
	service = n.Client(node.Hints{Priority: "high", Name: "service", Env: []string{"HEDDLE_WEIGHT=" + serviceWeight}}).Open(0)
	training = n.Client(node.Hints{Priority: "low", Name: "training", Env: []string{"HEDDLE_WEIGHT=" + trainingWeight}}).Open(0)
	waitGate(n, training, "yielding")
	return n, service, training
}

func TestYieldPointWaitsWhileTheServiceIsAtWork(t *testing.T) {
	_, service, training := serviceAndTraining(t, "9900", "100")
	if got := training.Number("wanted"); got != 0 {
		t.Error("the device is wanted while the service is idle")
	}
	if got := training.Number("yield 60000000000"); got != 0 {
		t.Errorf("a yield point waited %d ns for an idle service", got)
	}
	service.Do("launch %d", long.Nanoseconds())
	if got := training.Number("wanted"); got != 1 {
		t.Error("the device is not wanted while the service is at work")
	}
	if got := training.Number("yield 20000000"); got < 20_000_000 {
		t.Errorf("a yield point waited %d ns for a service at work, want 20 ms as asked", got)
	}
	training.Send("yield 60000000000")
	if answer, ok := training.AnswerWithin(20 * time.Millisecond); ok {
		t.Fatalf("the yield point did not wait: %s", answer)
	}
	service.Do("sync")
	if answer := training.Answer(); !strings.HasPrefix(answer, "ok ") || answer == "ok 0" {
		t.Errorf("the yield point answered %q, want a time", answer)
	}
	if got := service.Number("wanted"); got != 0 {
		t.Error("somebody wants the device of the highest class")
	}
}

// The training of a weight that is worth nearly all of the device goes on at once, one that is worth
// nearly nothing waits, though the service never pauses.
func TestYieldPointLeavesTheTrainingItsWeight(t *testing.T) {
	for _, test := range []struct {
		name              string
		service, training string
		waits             bool
	}{
		{"a training of all weight", "1", "10000", false},
		{"a training of no weight", "10000", "1", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, service, training := serviceAndTraining(t, test.service, test.training)
			service.Do("launch %d", (20 * time.Second).Nanoseconds())
			training.Send("yield 60000000000")
			answer, ok := training.AnswerWithin(3 * time.Second)
			if test.waits == ok {
				t.Errorf("answered in time: %t (%s), want %t", ok, answer, !test.waits)
			}
			service.Kill()
		})
	}
}

// A training that yields between its steps makes its steps in the pauses of a service, and none of
// its launches is lost.
func TestTrainingThatYieldsBetweenStepsGoesOn(t *testing.T) {
	_, service, training := serviceAndTraining(t, "100", "100")
	service.Do("pace 2000000 3 10000")
	waited := uint64(0)
	for range 30 {
		training.Do("launch 500000 4")
		training.Do("sync")
		waited += training.Number("yield 60000000000")
	}
	if got := training.Number("count"); got != 120 {
		t.Errorf("%d kernels of the training ran, want 120", got)
	}
	if waited == 0 {
		t.Error("the training never waited at a yield point")
	}
	service.Do("endloop")
}

// A service that never pauses holds the launches of a training, but not below what it is to keep.
func TestTrainingKeepsItsShareBesideAServiceThatNeverPauses(t *testing.T) {
	for _, test := range []struct {
		keep  string
		waits bool
	}{
		{"0%", true}, {"100%", false},
	} {
		t.Run(test.keep, func(t *testing.T) {
			n, c := start(t, node.Options{Config: patient + "keep = \"" + test.keep + "\"\n"}, "high", "low")
			service, training := c[0], c[1]
			waitGate(n, training, "yielding")
			service.Do("launch %d", (20 * time.Second).Nanoseconds())
			training.Do("yield 0")
			training.Send("launch 1000")
			answer, ok := training.AnswerWithin(500 * time.Millisecond)
			if ok == test.waits {
				t.Errorf("launched: %t (%s), want %t", ok, answer, !test.waits)
			}
			service.Kill()
		})
	}
}

func TestProgramWithYieldPointsRunsWithoutHeddle(t *testing.T) {
	n, _ := start(t, node.Options{})
	c := n.Client(node.Hints{Bare: true}).Open(0)
	c.Do("launch 1000")
	if waited, asked := c.Number("yield 60000000000"), c.Number("wanted"); waited != 0 || asked != 0 {
		t.Errorf("without Heddle a program waited %d ns and was told %d", waited, asked)
	}
}

// The Python example in a process that the test scripts: it prints what it sees of the service.
func TestYieldPointsFromPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skipf("no python3: %v", err)
	}
	const program = `
import ctypes, sys, time
import yield_points
cuda = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
print(yield_points.present())
# The context is there before heddled has told of everybody else on the device.
def wanted():
    end = time.monotonic() + (20 if yield_points.present() else 0)
    while not yield_points.wanted() and time.monotonic() < end:
        time.sleep(0.001)
    return yield_points.wanted()
for line in sys.stdin:
    print(wanted() if line == "wanted\n" else yield_points.yield_point(0.02) >= 0.02, flush=True)
`
	examples, err := filepath.Abs("../../docs/examples")
	if err != nil {
		t.Fatal(err)
	}
	n, clients := start(t, node.Options{}, "high", "low")
	service := clients[0]
	waitGate(n, clients[1], "yielding") // so the service shows what it does
	run := func(h node.Hints) []string {
		cmd := exec.CommandContext(t.Context(), python, "-c", program)
		cmd.Env = append(append(os.Environ(), n.ClientEnv(h)...), "PYTHONPATH="+examples, "PYTHONDONTWRITEBYTECODE=1")
		cmd.Stdin = strings.NewReader("wanted\nyield\n")
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("python3: %v", err)
		}
		return strings.Fields(string(out))
	}
	service.Do("launch %d", (20 * time.Second).Nanoseconds())
	for _, test := range []struct {
		hints node.Hints
		want  string
	}{
		{node.Hints{Priority: "low", Name: "python"}, "TrueTrueTrue"},
		{node.Hints{Bare: true}, "FalseFalseFalse"},
	} {
		if got := strings.Join(run(test.hints), ""); got != test.want {
			t.Errorf("with %+v it printed %q, want %q", test.hints, got, test.want)
		}
	}
	service.Kill()
}
