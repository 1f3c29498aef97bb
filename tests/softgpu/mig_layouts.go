package softgpu

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Placed is a GPU instance where it is or could be.
type Placed struct {
	Profile int `json:"profile"` // id
	Start   int `json:"start"`   // memory slice
}

// Layout is a set of GPU instances on one GPU.
type Layout []Placed

func (l Layout) sorted() Layout {
	l = slices.Clone(l)
	slices.SortFunc(l, func(a, b Placed) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Profile, b.Profile))
	})
	return l
}

// String writes "19:0 9:4": profile and start of each instance, in order of start.
func (l Layout) String() string {
	var parts []string
	for _, p := range l.sorted() {
		parts = append(parts, fmt.Sprintf("%d:%d", p.Profile, p.Start))
	}
	return strings.Join(parts, " ")
}

// Layouts is every layout that a model allows, found by trying all of them in the software GPU: whoever plans
// partitions can be held to it.
type Layouts struct {
	all     []Layout
	maximal map[string]bool // by text; false: something can be added
}

// Layouts enumerates the layouts of a model.
func (b Build) Layouts(ctx context.Context, model string) (*Layouts, error) {
	out, err := b.run(ctx, nil, "mig", "layouts", model)
	if err != nil {
		return nil, err
	}
	var list []struct {
		Maximal   bool   `json:"maximal"`
		Instances Layout `json:"instances"`
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return nil, fmt.Errorf("read layouts of %s: %w", model, err)
	}
	l := &Layouts{maximal: map[string]bool{}}
	for _, entry := range list {
		l.all = append(l.all, entry.Instances)
		l.maximal[entry.Instances.String()] = entry.Maximal
	}
	return l, nil
}

// All returns every layout, the empty one too.
func (l *Layouts) All() []Layout { return l.all }

// Maximal returns those to which nothing can be added.
func (l *Layouts) Maximal() []Layout {
	var list []Layout
	for _, layout := range l.all {
		if l.maximal[layout.String()] {
			list = append(list, layout)
		}
	}
	return list
}

// Legal says whether the instances may exist side by side.
func (l *Layouts) Legal(layout Layout) bool {
	_, found := l.maximal[layout.String()]
	return found
}

// CheckMIG looks for what may never be, whatever happened on the node: a layout that the model does not allow, an
// instance with MIG off, a MIG device twice, a unit of the device model without its compute instance, a process that
// holds what is gone, and a folder of capabilities that is not what the state says.
func (n *Node) CheckMIG(ctx context.Context) error {
	if err := n.tool(ctx, "mig", "show"); err != nil { // as whoever looks next would, it finishes what the dead began
		return err
	}
	computes := map[[3]int]bool{} // by GPU and ids
	uuids := map[string]bool{}
	wanted := []string{"nvidia-cap1", "nvidia-cap2"}
	for gpu := range n.gpuCount() {
		m, err := n.MIG(ctx, gpu)
		if err != nil {
			return err
		}
		legal, err := n.build.Layouts(ctx, n.GPUs()[gpu].Model)
		if err != nil {
			return err
		}
		if !legal.Legal(m.Layout()) || (!m.Enabled && len(m.Instances) > 0) {
			return fmt.Errorf("GPU %d: mode %t, instances %q: not legal", gpu, m.Enabled, m.Layout())
		}
		for _, g := range m.Instances {
			first := 3 + 135*gpu + 9*g.ID // the kernel driver's static table
			wanted = append(wanted, fmt.Sprintf("nvidia-cap%d", first))
			for _, c := range g.Compute {
				wanted = append(wanted, fmt.Sprintf("nvidia-cap%d", first+1+c.ID))
				computes[[3]int{gpu, g.ID, c.ID}] = true
				if uuids[c.UUID] {
					return fmt.Errorf("GPU %d: MIG device %s twice", gpu, c.UUID)
				}
				uuids[c.UUID] = true
			}
		}
	}
	if err := n.checkUnits(computes); err != nil {
		return err
	}
	return n.checkCapabilities(wanted)
}

func (n *Node) checkUnits(computes map[[3]int]bool) error {
	units := 0
	for u := n.gpuCount(); u < MaxUnits; u++ {
		unit := &n.state.Units[u]
		if unit.State == SlotFree {
			continue
		}
		units++
		if key := [3]int{int(unit.Device), int(unit.Instance), int(unit.Compute)}; !computes[key] {
			return fmt.Errorf("unit %d is of compute instance %v, which is not there", u, key)
		}
	}
	if units != len(computes) {
		return fmt.Errorf("%d units for %d compute instances", units, len(computes))
	}
	for i := range n.state.Procs {
		p := &n.state.Procs[i]
		if p.State != SlotUsed || p.MIGDevice == none || p.MIGCompute == none {
			continue
		}
		if key := [3]int{int(p.MIGDevice), int(p.MIGInstance), int(p.MIGCompute)}; !computes[key] {
			return fmt.Errorf("process %d holds compute instance %v, which is not there", p.PID, key)
		}
	}
	return nil
}

const none = ^uint32(0) // SOFTGPU_NONE

func (n *Node) checkCapabilities(wanted []string) error {
	entries, err := os.ReadDir(filepath.Join(n.Capabilities(), "dev", "nvidia-caps"))
	if errors.Is(err, fs.ErrNotExist) && len(wanted) == 2 {
		return nil // nothing of MIG ever changed
	}
	if err != nil {
		return fmt.Errorf("read capabilities: %w", err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	slices.Sort(got)
	slices.Sort(wanted)
	if !slices.Equal(got, wanted) {
		return fmt.Errorf("capabilities are %v, want %v", got, wanted)
	}
	return nil
}
