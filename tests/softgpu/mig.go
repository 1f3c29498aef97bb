package softgpu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
)

// MIG says how a GPU is divided now.
type MIG struct {
	Enabled   bool
	Pending   bool // the mode that is asked for
	Instances []GPUInstance
}

// GPUInstance is a MIG GPU instance, in order of ID in its list.
type GPUInstance struct {
	ID          int
	Profile     int // id
	Start, Size int // memory slices
	MemoryBytes uint64
	Compute     []ComputeInstance
	Serial      uint64 // of all instances ever made on the node: ids come again, this does not
}

// ComputeInstance is a MIG compute instance.
type ComputeInstance struct {
	ID          int
	Profile     int // id
	Start, Size int // compute slices of the GPU instance
	SMs         int
	UUID        string // of the MIG device, "MIG-..."
	Serial      uint64
}

// Layout returns where the GPU instances are.
func (m MIG) Layout() Layout {
	var l Layout
	for _, g := range m.Instances {
		l = append(l, Placed{Profile: g.Profile, Start: g.Start})
	}
	return l.sorted()
}

// MIG reads how a GPU is divided, at one moment between two changes.
func (n *Node) MIG(ctx context.Context, gpu int) (MIG, error) {
	const looks = 1000
	d := &n.state.Devices[gpu]
	for range looks {
		before := atomic.LoadUint64(&d.MIGChanges)
		m := d.mig()
		if before%2 == 0 && atomic.LoadUint64(&d.MIGChanges) == before {
			return m, nil
		}
		runtime.Gosched()
	}
	// Whoever was at it may be dead; the tool waits for the lock, and repairs the state if that is so.
	if err := n.Settle(ctx); err != nil {
		return MIG{}, fmt.Errorf("read MIG of GPU %d: %w", gpu, err)
	}
	return d.mig(), nil
}

func (d *Device) mig() MIG {
	m := MIG{Enabled: d.MIGMode == MIGEnabled, Pending: d.MIGPending == MIGEnabled}
	for id := range d.MIG {
		g := &d.MIG[id]
		if g.State != SlotUsed {
			continue
		}
		instance := GPUInstance{
			ID: id, Profile: int(g.Profile), Start: int(g.Start), Size: int(g.Size), MemoryBytes: g.MemoryBytes, Serial: g.Serial,
		}
		for id := range g.Compute {
			c := &g.Compute[id]
			if c.State != SlotUsed {
				continue
			}
			instance.Compute = append(instance.Compute, ComputeInstance{
				ID: id, Profile: int(c.Profile), Start: int(c.Start), Size: int(c.Size), SMs: int(c.SMCount),
				UUID: uuid("MIG", c.UUID), Serial: c.Serial,
			})
		}
		m.Instances = append(m.Instances, instance)
	}
	return m
}

func uuid(prefix string, b [16]byte) string {
	return fmt.Sprintf("%s-%x-%x-%x-%x-%x", prefix, b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// SetMIG brings the mode about as the board needs it, with a reset or without; nobody may use the GPU.
func (n *Node) SetMIG(ctx context.Context, gpu int, on bool) error {
	mode := map[bool]string{true: "on", false: "off"}[on]
	err := n.tool(ctx, "mig", "mode", strconv.Itoa(gpu), mode)
	if err != nil && strings.Contains(err.Error(), "has to be reset") {
		err = n.ResetGPU(ctx, gpu)
	}
	return err
}

// CreateMIG makes a GPU instance at a start, and unless bare a compute instance that is all of it, as a program
// would that knows nothing of the one under test. It returns the id of the GPU instance.
func (n *Node) CreateMIG(ctx context.Context, gpu int, at Placed, bare bool) (int, error) {
	args := []string{"mig", "create", strconv.Itoa(gpu), fmt.Sprintf("%d:%d", at.Profile, at.Start)}
	if bare {
		args = append(args, "--bare")
	}
	out, err := n.ask(ctx, args...)
	if err != nil {
		return 0, err
	}
	var id int
	if _, err := fmt.Sscanf(out, strconv.Itoa(gpu)+"/%d", &id); err != nil {
		return 0, fmt.Errorf("softgpu mig create: read %q: %w", out, err)
	}
	return id, nil
}

// DestroyMIG destroys a GPU instance with its compute instances.
func (n *Node) DestroyMIG(ctx context.Context, gpu, id int) error {
	return n.tool(ctx, "mig", "destroy", fmt.Sprintf("%d/%d", gpu, id))
}

// ClearMIG destroys all instances of a GPU.
func (n *Node) ClearMIG(ctx context.Context, gpu int) error {
	return n.tool(ctx, "mig", "destroy", strconv.Itoa(gpu))
}

// ResetGPU resets a GPU: its instances are gone, and a pending mode is the mode.
func (n *Node) ResetGPU(ctx context.Context, gpu int) error {
	return n.tool(ctx, "reset", strconv.Itoa(gpu))
}

// Reboot boots the node again: no process of it may be alive.
func (n *Node) Reboot(ctx context.Context) error { return n.tool(ctx, "reboot") }

// Boots says how often the node was booted again.
func (n *Node) Boots() uint64 { return atomic.LoadUint64(&n.state.Header.Boots) }

// Holder is a process that keeps something of MIG in use, as a monitor may.
type Holder struct {
	PID   int
	cmd   *exec.Cmd
	input io.Closer
}

// HoldMIG starts a process that has a GPU open, or one of its GPU instances, or one of the compute instances: the
// target is "0", "0/1" or "0/1/0". It ends with Release, or with this process, and not with ctx.
func (n *Node) HoldMIG(ctx context.Context, target string) (*Holder, error) {
	cmd := exec.CommandContext(context.WithoutCancel(ctx), n.build.Tool, "mig", "hold", target)
	cmd.Env = append(os.Environ(), n.stateEnv()...)
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("hold %s: %w", target, err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("hold %s: %w", target, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("hold %s: %w", target, err)
	}
	h := &Holder{cmd: cmd, input: input}
	if _, err := fmt.Fscanf(output, "held by %d\n", &h.PID); err != nil {
		return nil, errors.Join(fmt.Errorf("hold %s: %w", target, err), h.Release())
	}
	return h, nil
}

// Release ends the process. It may be called again.
func (h *Holder) Release() error {
	if h.cmd == nil {
		return nil
	}
	err := h.input.Close()
	err = errors.Join(err, h.cmd.Wait())
	h.cmd = nil
	return err
}

// Capabilities is the folder that plays the kernel driver's files about MIG: proc/driver/nvidia-caps/mig-minors,
// proc/driver/nvidia/capabilities, dev/nvidia-caps. It is there from the first change of MIG on.
func (n *Node) Capabilities() string { return n.path + ".caps" }
