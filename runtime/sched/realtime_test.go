package sched_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddle-project/heddle/runtime/sched"
)

const ms = time.Millisecond

func TestAdmit(t *testing.T) {
	one := sched.Task{Client: 1, Period: 10 * ms, Budget: 2 * ms, Deadline: 5 * ms}
	tests := []struct {
		name     string
		tasks    []sched.Task
		blocking time.Duration
		response time.Duration
		want     error
	}{
		{"nobody", nil, ms, ms, nil},
		{"one alone takes its budget", []sched.Task{one}, 0, 2 * ms, nil},
		{"one waits for a kernel of a lower class", []sched.Task{one}, 3 * ms, 5 * ms, nil},
		{"a longer kernel is too long", []sched.Task{one}, 3*ms + 1, 0, sched.ErrUnschedulable},
		{"two wait for each other", []sched.Task{one, {2, 20 * ms, 3 * ms, 5 * ms}}, 0, 5 * ms, nil},
		{"two and a kernel", []sched.Task{one, {2, 20 * ms, 3 * ms, 5 * ms}}, 1, 0, sched.ErrUnschedulable},
		{"a short task beside a long one", []sched.Task{one, {2, 100 * ms, 50 * ms, 100 * ms}}, 0, 0, sched.ErrUnschedulable},
		{"all of the device", []sched.Task{{1, 2 * ms, ms, 2 * ms}, {2, 2 * ms, ms, 2 * ms}}, 0, 2 * ms, nil},
		{"more than the device", []sched.Task{{1, 2 * ms, ms, 2 * ms}, {2, 2 * ms, ms + 1, 2 * ms}}, 0, 0, sched.ErrUnschedulable},
		{"no budget", []sched.Task{{1, ms, 0, ms}}, 0, 0, sched.ErrTask},
		{"a deadline beyond the period", []sched.Task{{1, ms, ms, 2 * ms}}, 0, 0, sched.ErrTask},
		{"a budget beyond the deadline", []sched.Task{{1, 3 * ms, 2 * ms, ms}}, 0, 0, sched.ErrTask},
		{"an absurd period", []sched.Task{{1, 1<<63 - 1, 1, 1}}, 0, 0, sched.ErrTask},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := sched.Admit(tt.tasks, tt.blocking)
			if !errors.Is(err, tt.want) || err == nil && got != tt.response {
				t.Errorf("got %v, %v; want %v, %v", got, err, tt.response, tt.want)
			}
		})
	}
}

// TestAdmittedTasksMeetTheirDeadlines plays admitted tasks in the worst order that the test allows:
// the watched task is served last, and the others come with it.
func TestAdmittedTasksMeetTheirDeadlines(t *testing.T) {
	r := newRand(t)
	admitted := 0
	for range 20_000 {
		tasks := make([]sched.Task, 1+r.IntN(4))
		for i := range tasks {
			period := time.Duration(10 + r.IntN(90))
			deadline := 1 + time.Duration(r.IntN(int(period)))
			tasks[i] = sched.Task{Client: sched.ClientID(i + 1), Period: period, Deadline: deadline, Budget: 1 + time.Duration(r.IntN(int(deadline)))/3}
		}
		blocking := time.Duration(r.IntN(10))
		promised, err := sched.Admit(tasks, blocking)
		if err != nil {
			continue
		}
		admitted++
		for i := range tasks {
			// Everybody comes at 0, a kernel of a lower class is on the device.
			waits := blocking + tasks[i].Budget
			left := make([]time.Duration, len(tasks)) // until the next of each
			for at := time.Duration(0); at < waits; at++ {
				for j := range tasks {
					if j != i && left[j] == 0 {
						waits += tasks[j].Budget
						left[j] = tasks[j].Period
					}
					left[j]--
				}
			}
			if waits > tasks[i].Deadline || waits > promised {
				t.Fatalf("task %d takes %v, promised %v: %+v, blocking %v", i, waits, promised, tasks, blocking)
			}
		}
	}
	if admitted < 500 {
		t.Errorf("only %d sets were admitted", admitted)
	}
}

// The three tests below are the deadlocks of a published scheduler with preemptive priorities
// (GCAPS, ECRTS 2024, as described for a port of it): what it kept about who runs differed from
// what was true.

func settle(t *testing.T, p sched.Policy, clients []sched.Client) map[sched.ClientID]sched.Verdict {
	t.Helper()
	out := map[sched.ClientID]sched.Verdict{}
	for _, v := range p.Plan(sched.View{Clients: clients}) {
		out[v.Client] = v
	}
	if len(out) != len(clients) {
		t.Fatalf("%d verdicts for %d clients", len(out), len(clients))
	}
	return out
}

func inClasses(classes ...int) []sched.Client {
	clients := make([]sched.Client, len(classes))
	for i, class := range classes {
		clients[i] = sched.Client{ID: sched.ClientID(i + 1), Device: "gpu", Class: class, Weight: 100}
	}
	return clients
}

func TestTheEndOfAPreemptedClientChangesNobodyElse(t *testing.T) {
	for _, p := range []sched.Policy{sched.Priority{}, sched.NewHeddle(sched.DefaultSettings())} {
		before := settle(t, p, inClasses(0, 2, 7))
		after := settle(t, p, slices.Delete(inClasses(0, 2, 7), 1, 2)) // the one in the middle is gone
		if got := after[1]; got.Gate != before[1].Gate || len(got.Yields) != 0 {
			t.Errorf("%s: the most urgent one went from %+v to %+v", p.Name(), before[1], got)
		}
		if diff := cmp.Diff([]sched.ClientID{1}, after[3].Yields); diff != "" {
			t.Errorf("%s: the last one yields to others than who is left: %s", p.Name(), diff)
		}
	}
}

func TestBestEffortRunsWhenTheLastRealTimeClientIsGone(t *testing.T) {
	for _, p := range []sched.Policy{sched.Priority{}, sched.NewHeddle(sched.DefaultSettings())} {
		settle(t, p, inClasses(0, 0, 9))
		for id, v := range settle(t, p, inClasses(0, 0, 9)[2:]) {
			if v.Gate != 0 || len(v.Yields) != 0 {
				t.Errorf("%s: client %d is still held back: %+v", p.Name(), id, v)
			}
		}
	}
}

func TestAPlanDependsOnWhoIsThereAndNotOnHowTheyCame(t *testing.T) {
	r := newRand(t)
	for range 500 {
		p := sched.NewHeddle(sched.DefaultSettings())
		clients := inClasses(0, 2, 2, 7, 7, 9)
		for range r.IntN(12) { // clients come and go in any order
			some := slices.Clone(clients)
			r.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
			p.Plan(sched.View{Clients: some[:r.IntN(len(some)+1)]})
		}
		got := settle(t, p, clients)
		if diff := cmp.Diff(settle(t, sched.NewHeddle(sched.DefaultSettings()), clients), got); diff != "" {
			t.Fatalf("history shows (-fresh +old):\n%s", diff)
		}
	}
}

func TestEqualClassesDoNotYieldToEachOther(t *testing.T) {
	for id, v := range settle(t, sched.Priority{}, inClasses(0, 0, 0)) {
		if len(v.Yields) != 0 || v.Gate != 0 {
			t.Errorf("client %d: %+v", id, v)
		}
	}
}
