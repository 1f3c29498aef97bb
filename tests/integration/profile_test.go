package integration

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-project/heddle/tests/node"
)

// shown is what heddle profile show prints of a workload.
type shown struct {
	Profile struct {
		Workload string
		Learning bool
		Covered  float64 `json:"covered_share"`
		Samples  uint64
	}
	Kernels []struct {
		Name      string
		Known     bool
		Predicted int64 `json:"predicted_ns"`
	}
}

func showProfile(t *testing.T, n *node.Node, workload string) shown {
	t.Helper()
	var s shown
	if err := json.Unmarshal([]byte(heddle(t, n, "profile", "show", workload, "--json")), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// play runs the player with a shipped table under the interposer until it ends.
func play(t *testing.T, n *node.Node, name, table, seconds string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(root, "build", "bin", "heddle-play"), "--mode", "train", "--duration", seconds,
		"--table", filepath.Join(root, "tests", "play", "workloads", table))
	cmd.Env = n.ClientEnv(node.Hints{Name: name})
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func TestWhatIsLearntIsShownKeptAndCarriedOver(t *testing.T) {
	n := node.New(t, node.Options{})
	n.StartDaemon()
	play(t, n, "learner", "small-training.csv", "1")
	first := showProfile(t, n, "learner")
	if first.Profile.Covered < 0.75 || len(first.Kernels) == 0 || !strings.HasPrefix(first.Profile.Workload, "name:") {
		t.Fatalf("after a second of work: %+v", first)
	}
	for _, k := range first.Kernels {
		if k.Known && (k.Name == "" || k.Predicted == 0) {
			t.Errorf("a kernel is known and has no name or time: %+v", k)
		}
	}
	n.StopDaemon()
	n.StartDaemon()
	if again := showProfile(t, n, "learner"); again.Profile.Samples != first.Profile.Samples || len(again.Kernels) != len(first.Kernels) {
		t.Errorf("after a restart %+v, before %+v", again.Profile, first.Profile)
	}
	file := filepath.Join(t.TempDir(), "learner.json")
	heddle(t, n, "profile", "export", "learner", "-o", file)
	if got := heddle(t, n, "profile", "forget", "learner"); got != "1 profile forgotten\n" {
		t.Errorf("%q", got)
	}
	if got := heddle(t, n, "profile", "ls"); !strings.HasPrefix(got, "no profiles") {
		t.Errorf("after it was forgotten: %s", got)
	}
	heddle(t, n, "profile", "import", file)
	if back := showProfile(t, n, "learner"); back.Profile.Samples != first.Profile.Samples || back.Profile.Workload != first.Profile.Workload {
		t.Errorf("carried over %+v, was %+v", back.Profile, first.Profile)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: command lines are nobody else's affair", info, err)
	}
}
