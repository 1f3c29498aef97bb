package integration

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/heddle-project/heddle/tests/node"
)

// probeCommand is heddle probe of the player with a shipped table, ready to start.
func probeCommand(t *testing.T, n *node.Node, mps bool, args ...string) *exec.Cmd {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	build := filepath.Join(root, "build")
	env := append(os.Environ(), n.DeviceEnv()...)
	env = append(env, "HEDDLE_API="+n.APISocket(), "LD_LIBRARY_PATH="+filepath.Join(build, "softgpu"),
		"CUDA_MPS_PIPE_DIRECTORY=/nonexistent")
	if mps {
		set := exec.Command(filepath.Join(build, "softgpu", "bin", "softgpu"), "set", "0", "mps", "on")
		set.Env = env
		if out, err := set.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	args = append([]string{"probe", "--seconds", "0.5", "--name", "probed"}, args...)
	args = append(args, "--", filepath.Join(build, "bin", "heddle-play"), "--mode", "train", "--duration", "120",
		"--table", filepath.Join(root, "tests", "play", "workloads", "small-training.csv"))
	cmd := exec.Command(filepath.Join(build, "bin", "heddle"), args...)
	cmd.Env = env
	return cmd
}

func TestProbeMeasuresAndKeepsWhatItMeasured(t *testing.T) {
	n := node.New(t, node.Options{Config: "[scheduling]\npolicy = \"fair\"\n"})
	n.StartDaemon()
	cmd := probeCommand(t, n, true, "--json", "--channel", "dram,fma,blocks")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	var got struct {
		Channels []struct {
			Channel  string
			Kept     bool
			Slowdown []float64
		}
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if len(got.Channels) != 3 {
		t.Fatalf("%s", out)
	}
	for i, want := range []string{"dram", "fma", "blocks"} {
		c := got.Channels[i]
		if c.Channel != want || c.Kept != (want != "blocks") || len(c.Slowdown) != 4 {
			t.Errorf("channel %d: %+v", i, c)
		}
		for _, s := range c.Slowdown {
			if s < 0.2 || s > 100 {
				t.Errorf("%s: a slowdown of %v", want, s)
			}
		}
	}
	if !strings.Contains(n.Log(), "sensitivity kept") {
		t.Error("heddled has kept nothing")
	}
	if policy := heddle(t, n, "policy"); !strings.Contains(policy, "fair") || strings.Contains(policy, "set") {
		t.Errorf("the policy was not put back:\n%s", policy)
	}
	n.Eventually("nobody is left", func() bool { return len(n.Clients()) == 0 })
}

func TestProbeNeedsKernelsSideBySide(t *testing.T) {
	n := node.New(t, node.Options{})
	n.StartDaemon()
	cmd := probeCommand(t, n, false, "--channel", "dram")
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	if !strings.Contains(string(out), "start MPS first") {
		t.Errorf("%s", out)
	}
	n.Eventually("nobody is left", func() bool { return len(n.Clients()) == 0 })
}

func TestAnInterruptedProbePutsThePolicyBack(t *testing.T) {
	n := node.New(t, node.Options{})
	n.StartDaemon()
	before := heddle(t, n, "policy", "--json")
	cmd := probeCommand(t, n, true, "--seconds", "60", "--channel", "dram")
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	n.Eventually("the hog is there", func() bool { return len(n.Clients()) == 2 })
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	err := cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 || !strings.Contains(output.String(), "interrupted; nothing was kept") {
		t.Errorf("%v: %s", err, output.String())
	}
	if after := heddle(t, n, "policy", "--json"); after != before {
		t.Errorf("the policy was %s, is %s", before, after)
	}
	n.Eventually("nobody is left", func() bool { return len(n.Clients()) == 0 })
}
