// Package script reads the scripts of docs/device-model.md, the input of `softgpu replay`, and plays them on the device
// model.
package script

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/heddle-project/heddle/runtime/sim/device"
)

// Script is a device and what is submitted to it.
type Script struct {
	GPU      device.GPU
	Contexts []Context
	Streams  []Stream
	Items    []Item // in the order of the text
}

// Context is a context and its percentage under MPS, or device.Own.
type Context struct {
	Name    string
	Percent int
}

// Stream is a stream of a context.
type Stream struct {
	Name     string
	Context  int // index
	Priority int32
	Kind     device.StreamKind
}

// Kind is what an item does.
type Kind uint8

// The kinds of items.
const (
	Kernel Kind = iota
	Copy
	Mark
	Wait
)

// Item is one submission.
type Item struct {
	At     int64
	Stream int // index
	Label  string
	Kind   Kind
	Kernel device.Kernel
	Queue  device.Queue
	Bytes  uint64
	For    int // index of the item that a wait is for
}

// Result is when an item ran.
type Result struct {
	Done       bool
	Start, End int64
}

// Play submits every item at its time and runs the device until nothing happens any more. The results are in the order
// of the items.
func (s *Script) Play() []Result {
	d := device.New(s.GPU)
	contexts := make([]device.Context, len(s.Contexts))
	for i, c := range s.Contexts {
		contexts[i] = d.AddContext(c.Percent)
	}
	streams := make([]device.Stream, len(s.Streams))
	for i, st := range s.Streams {
		streams[i] = d.AddStream(contexts[st.Context], st.Priority, st.Kind)
	}
	results := make([]Result, len(s.Items))
	collect := func(to int64) {
		for _, c := range d.Advance(to) {
			results[c.Tag] = Result{Done: true, Start: c.Start, End: c.End}
		}
	}
	points := make([]device.Point, len(s.Items))
	for _, i := range s.order() {
		it := &s.Items[i]
		collect(it.At)
		points[i] = submit(d, streams[it.Stream], uint64(i), it, points)
	}
	for t, ok := d.Next(); ok; t, ok = d.Next() {
		collect(t)
	}
	return results
}

func submit(d *device.Device, s device.Stream, tag uint64, it *Item, points []device.Point) device.Point {
	switch it.Kind {
	case Kernel:
		return d.Kernel(s, tag, it.Kernel)
	case Copy:
		return d.Copy(s, tag, it.Queue, it.Bytes)
	case Wait:
		return d.Wait(s, tag, points[it.For])
	default:
		return d.Mark(s, tag)
	}
}

// order is the order of submission: by time, then by line.
func (s *Script) order() []int {
	order := make([]int, len(s.Items))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.Items[a].At, s.Items[b].At) })
	return order
}

// Write prints results as `softgpu replay` does: LABEL START END, or dashes for what never ends.
func (s *Script) Write(w io.Writer, results []Result) error {
	for i, r := range results {
		line := fmt.Sprintf("%s - -\n", s.Items[i].Label)
		if r.Done {
			line = fmt.Sprintf("%s %d %d\n", s.Items[i].Label, r.Start, r.End)
		}
		if _, err := io.WriteString(w, line); err != nil {
			return err
		}
	}
	return nil
}
