package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
)

// kind is what a track shows. Tracks stand in this order.
type kind int

const (
	held kind = iota
	launches
	device
	idle
	foretold
)

// kinds of tracks, and how many lanes one may have: as many launch, or wait, as there are threads.
const (
	kinds    = int(foretold) + 1
	lanesMax = 64
)

// noStream stands for a stream that is not known.
const noStream = -1

// process is a client.
type process struct {
	pid     uint64 // its id: two clients can have one pid, and one can be invisible
	label   string // for others
	latest  int64  // end of what was drawn last
	marks   int    // track of what is missing, 0 = nothing is
	tracks  map[trackKey]*track
	streams map[streamKey]*queue
	kernels map[uint64]*kernel
}

type trackKey struct {
	device uint32
	kind   kind
	stream int64
}

// track is one or more lanes: what overlaps is drawn one below the other.
type track struct {
	lanes []lane
}

type lane struct {
	tid int
	end int64
}

// kernel is what is known of a key.
type kernel struct {
	name     []byte // as JSON
	args     arguments
	measured uint64 // device time of its last measured launch
}

func (k *kernel) describe(d *heddlev1.TraceKernel) {
	name := d.GetName()
	if name == "" {
		name = fmt.Sprintf("kernel %016x", d.GetKey())
	}
	if d.GetGraph() {
		k.name = quoted("graph of " + name)
		return
	}
	k.name = quoted(name)
	k.args = arguments{
		text("grid", dimensions(d.GetGrid())), text("block", dimensions(d.GetBlock())),
		number("shared_bytes", uint64(d.GetSharedBytes())),
	}
}

func dimensions(d []uint32) string {
	words := make([]string, len(d))
	for i := range d {
		words[i] = fmt.Sprint(d[i])
	}
	return strings.Join(words, " x ")
}

func (p *process) kernel(key uint64) *kernel {
	k := p.kernels[key]
	if k == nil {
		name := "kernel without a name"
		if key != 0 {
			name = fmt.Sprintf("kernel %016x", key)
		}
		k = &kernel{name: quoted(name)}
		p.kernels[key] = k
	}
	return k
}

// introduce makes a client a process of the trace.
func (t *Writer) introduce(c *heddlev1.Client) {
	p := t.clients[c.GetId()]
	if p == nil {
		p = &process{
			pid: c.GetId(), tracks: map[trackKey]*track{}, streams: map[streamKey]*queue{}, kernels: map[uint64]*kernel{},
		}
		t.clients[p.pid] = p
		t.summary.Clients++
	}
	name := c.GetName()
	if name == "" {
		name, _, _ = strings.Cut(c.GetCommand(), " ")
	}
	p.label = strings.TrimSpace(fmt.Sprintf("%s, client %d", name, p.pid))
	t.out.meta(p.pid, 0, "process_name", text("name", fmt.Sprintf("%s, pid %d, %s", p.label, c.GetPid(), t.opt.Class(c.GetPriority()))))
	t.out.meta(p.pid, 0, "process_sort_index", number("sort_index", uint64(c.GetPriority())))
}

// ordered are the clients by number.
func (t *Writer) ordered() []*process {
	list := make([]*process, 0, len(t.clients))
	for _, p := range t.clients {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b *process) int { return cmp.Compare(a.pid, b.pid) })
	return list
}

// show draws a slice on the first lane of a track where it overlaps nothing. Nothing is drawn before
// what a lane has already, so that its events are in the order of time.
func (t *Writer) show(p *process, key trackKey, from, to int64, name []byte, args arguments) {
	tr := p.tracks[key]
	if tr == nil {
		tr = &track{}
		p.tracks[key] = tr
	}
	i := slices.IndexFunc(tr.lanes, func(l lane) bool { return l.end <= from })
	if i < 0 {
		if len(tr.lanes) == lanesMax {
			t.summary.Missing++
			return
		}
		i = len(tr.lanes)
		place := 1 + int(key.device)*kinds + int(key.kind)
		tr.lanes = append(tr.lanes, lane{tid: t.track(p, t.title(key), place)})
	}
	to = max(from, to)
	tr.lanes[i].end = to
	p.latest = max(p.latest, to)
	t.out.slice(p.pid, tr.lanes[i].tid, from, to, categories[key.kind], name, args)
}

// track makes a track of a process. No two processes have one of the same number: some viewers take
// them for threads of the system.
func (t *Writer) track(p *process, title string, place int) int {
	t.tids++
	t.out.meta(p.pid, t.tids, "thread_name", text("name", title))
	t.out.meta(p.pid, t.tids, "thread_sort_index", number("sort_index", uint64(place))) //nolint:gosec // small
	return t.tids
}

var categories = [kinds]string{"held", "launch", "device", "idle", "predicted"}

func (t *Writer) title(key trackKey) string {
	name := t.deviceName(key.device)
	switch key.kind {
	case held:
		return name + " held"
	case launches:
		return name + " launches"
	case idle:
		return name + " idle"
	case foretold:
		return name + " idle, predicted"
	default:
		if key.stream == noStream {
			return name + " device, unknown stream"
		}
		return fmt.Sprintf("%s device, stream %d", name, key.stream)
	}
}

func (t *Writer) deviceName(number uint32) string {
	d := t.devices[number]
	if d == nil {
		return fmt.Sprintf("device %d", number)
	}
	if _, slice, ok := strings.Cut(d.GetName(), " MIG "); ok {
		return fmt.Sprintf("GPU %d MIG %s", d.GetIndex(), slice)
	}
	return fmt.Sprintf("GPU %d", d.GetIndex())
}
