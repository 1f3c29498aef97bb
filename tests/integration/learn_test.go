package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heddle-project/heddle/tests/node"
)

// workload is a table for the player in which each kernel has a name of its own, and so a time.
type workload map[string]time.Duration

// someWorkload has so many kernels, of times between two.
func someWorkload(prefix string, kernels int, from, to time.Duration) workload {
	w := workload{}
	for i := range kernels {
		w[fmt.Sprintf("%s_%02d", prefix, i)] = from + (to-from)*time.Duration(i*7%kernels)/time.Duration(kernels)
	}
	return w
}

// write makes the table's file, in which all kernels take so many times their time.
func (w workload) write(t *testing.T, times float64) string {
	t.Helper()
	var table strings.Builder
	table.WriteString("Name,Profile,Memory_footprint,SM_usage,Duration\n")
	for i := range len(w) {
		for name, length := range w {
			if strings.HasSuffix(name, fmt.Sprintf("_%02d", i)) {
				fmt.Fprintf(&table, "%s,1,1048576,%d,%d\n", name, 16+8*(i%5), int(times*float64(length)))
			}
		}
	}
	path := filepath.Join(t.TempDir(), "table.csv")
	if err := os.WriteFile(path, []byte(table.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// player is a heddle-play under the interposer.
type player struct {
	cmd *exec.Cmd
	out bytes.Buffer
}

// startPlayer has one play from a time on that others can wait for, too; 0 = at once.
func startPlayer(t *testing.T, n *node.Node, hints node.Hints, start time.Duration, args ...string) *player {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	p := &player{cmd: exec.Command(filepath.Join(root, "build", "bin", "heddle-play"),
		append(args, "--warmup", "0")...)}
	if start != 0 {
		p.cmd.Args = append(p.cmd.Args, "--start-at", strconv.FormatInt(int64(start), 10))
	}
	p.cmd.Env = n.ClientEnv(hints)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p
}

// kill ends it.
func (p *player) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // it was killed
}

// soon is the time of the clock that players start at.
func soon(t *testing.T) time.Duration {
	t.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		t.Fatal(err)
	}
	return time.Duration(now.Nano()) + 500*time.Millisecond
}

// wrong is the part of a workload's kernels that are predicted to take a tenth more or less than they
// do, and which they are.
func (w workload) wrong(s *shown, times float64) (part float64, which []string) {
	for name, length := range w {
		want := times * float64(length)
		ok := false
		for _, k := range s.Kernels {
			if strings.Contains(k.Name, name) {
				ok = math.Abs(float64(k.Predicted)/want-1) <= 0.1
				if !ok {
					which = append(which, fmt.Sprintf("%s takes %v, predicted %v", name, time.Duration(want), time.Duration(k.Predicted)))
				}
			}
		}
		if !ok {
			part++
		}
	}
	return part / float64(len(w)), which
}

// counts are how many launches a client of a name has made, and how many of its workload's were measured.
func counts(t *testing.T, n *node.Node, name string) (launches, measured uint64) {
	t.Helper()
	for _, c := range n.Clients() {
		if c.GetName() == name {
			launches = c.GetLaunches()
		}
	}
	return launches, showProfile(t, n, name).Profile.Samples
}

// wantLearnt waits until all that a workload's next launches take is known, and few are measured.
func (w workload) wantLearnt(t *testing.T, n *node.Node, name string, times float64) {
	t.Helper()
	begin := time.Now()
	var which []string
	learnt := func() bool {
		var s shown
		out, err := heddleCommand(n, "profile", "show", name, "--json").Output()
		if err != nil || json.Unmarshal(out, &s) != nil {
			return false // it has told nothing yet
		}
		var wrong float64
		wrong, which = w.wrong(&s, times)
		return !s.Profile.Learning && wrong <= 0.1
	}
	if !node.Wait(node.Bound, learnt) {
		launches, _ := counts(t, n, name)
		t.Fatalf("%s is not learnt after %d launches: %q\n%s", name, launches, which, heddle(t, n, "profile", "show", name))
	}
	took := time.Since(begin)
	launches, measured := counts(t, n, name)
	more, moreMeasured := launches, measured
	if !node.Wait(node.Bound, func() bool {
		more, moreMeasured = counts(t, n, name)
		return more-launches >= 1000
	}) {
		t.Fatalf("%s launches no more", name)
	}
	part := float64(moreMeasured-measured) / float64(more-launches)
	t.Logf("%s: learnt %v later; then %.1f %% of %d launches were measured", name, took.Round(10*time.Millisecond), 100*part, more-launches)
	if part > 0.5 {
		t.Errorf("%s: %.0f %% of the launches are measured, though all is known", name, 100*part)
	}
}

func aService() workload { return someWorkload("serve", 20, 50*time.Microsecond, 200*time.Microsecond) }
func aTraining() workload {
	return someWorkload("train", 40, 50*time.Microsecond, 400*time.Microsecond)
}

const longEnough = "60" // seconds: players are killed before

var serving = []string{"--mode", "infer", "--arrivals", "poisson:80", "--duration", longEnough, "--table"}
var trains = []string{"--mode", "train", "--duration", longEnough, "--table"}

// A service and a training that start together have never been alone.
func TestAPairThatIsNeverAloneIsLearnt(t *testing.T) {
	hostileScenes(t, func(t *testing.T, opts node.Options) {
		n := node.New(t, opts)
		n.StartDaemon()
		start := soon(t)
		startPlayer(t, n, node.Hints{Priority: "high", Name: "service"}, start, append(serving, aService().write(t, 1))...)
		startPlayer(t, n, node.Hints{Priority: "low", Name: "training"}, start, append(trains, aTraining().write(t, 1))...)
		aService().wantLearnt(t, n, "service", 1)
		aTraining().wantLearnt(t, n, "training", 1)
	})
}

// As with another batch size: the same kernels under the same name, and each takes another time.
func TestEstimatesFollowAWorkloadThatChanges(t *testing.T) {
	for _, alone := range []bool{true, false} {
		for _, times := range []float64{1.3, 0.7} {
			t.Run(fmt.Sprintf("%g times, was alone %t", times, alone), func(t *testing.T) {
				hostileScenes(t, func(t *testing.T, opts node.Options) {
					n := node.New(t, opts)
					n.StartDaemon()
					if !alone {
						startPlayer(t, n, node.Hints{Priority: "low", Name: "training"}, 0, append(trains, aTraining().write(t, 1))...)
						aTraining().wantLearnt(t, n, "training", 1)
					}
					before := startPlayer(t, n, node.Hints{Priority: "high", Name: "service"}, 0, append(serving, aService().write(t, 1))...)
					aService().wantLearnt(t, n, "service", 1)
					before.kill()
					if alone {
						startPlayer(t, n, node.Hints{Priority: "low", Name: "training"}, 0, append(trains, aTraining().write(t, 1))...)
						aTraining().wantLearnt(t, n, "training", 1)
					}
					startPlayer(t, n, node.Hints{Priority: "high", Name: "service"}, 0, append(serving, aService().write(t, times))...)
					aService().wantLearnt(t, n, "service", times)
				})
			})
		}
	}
}
