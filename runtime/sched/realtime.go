package sched

import (
	"errors"
	"fmt"
	"time"
)

// Task is what a real-time client declares: at most Budget of device time in every Period, done
// Deadline after it was launched.
type Task struct {
	Client                   ClientID
	Period, Budget, Deadline time.Duration
}

// Errors of Admit, for errors.Is.
var (
	// ErrTask is a declaration that makes no sense by itself.
	ErrTask = errors.New("not a real-time task")
	// ErrUnschedulable is a set of tasks of which one can miss its deadline.
	ErrUnschedulable = errors.New("deadlines cannot be promised")
)

// taskMax bounds the figures of a task, and so the work of the test.
const taskMax = time.Hour

func (t *Task) check() error {
	switch {
	case t.Budget <= 0 || t.Budget > t.Deadline:
		return fmt.Errorf("%w: client %d declares a budget of %v for a deadline of %v", ErrTask, t.Client, t.Budget, t.Deadline)
	case t.Deadline > t.Period || t.Period > taskMax:
		return fmt.Errorf("%w: client %d declares a deadline of %v in a period of %v; want deadline <= period <= %v", ErrTask, t.Client, t.Deadline, t.Period, taskMax)
	}
	return nil
}

// Admit answers whether every task meets its deadline, and the response time that all of them can
// be promised. blocking is the longest thing of a lower class that can be on the device when a task
// comes: its longest kernel, or the bound on it, and what it costs to switch to another context.
//
// Real-time clients share one class, and inside a class the driver decides whose kernels come
// first. The test is sound for every order that does not leave the device idle while there is work:
// nothing takes longer than the longest busy period,
//
//	L = blocking + sum over all tasks of ceil(L / period) * budget
//
// (Lehoczky, RTSS 1990, for the task that is served last). All deadlines must be at least L, and
// none is longer than its period, so no task comes twice in an L that passes: it is the sum of the
// budgets and the blocking. For a single task it is exact.
func Admit(tasks []Task, blocking time.Duration) (response time.Duration, err error) {
	least := time.Duration(0)
	for i := range tasks {
		t := &tasks[i]
		if err := t.check(); err != nil {
			return 0, err
		}
		if least == 0 || t.Deadline < least {
			least = t.Deadline
		}
	}
	busy := max(0, blocking)
	for i := range tasks {
		busy += tasks[i].Budget
	}
	if len(tasks) > 0 && busy > least {
		return busy, fmt.Errorf("%w: %d clients can keep the device busy for %v, blocked for %v of it, and one has a deadline of %v",
			ErrUnschedulable, len(tasks), busy, max(0, blocking), least)
	}
	return busy, nil
}
