package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/heddle-project/heddle/runtime/api"
	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
)

const (
	demoTick      = 100 * time.Millisecond // on a terminal
	demoLineEvery = 2 * time.Second        // elsewhere
	demoStrip     = 40                     // ticks that the shares are counted over
	demoShown     = 16                     // ticks that a strip shows, so that a row fits into 80 columns
)

// demoView shows what goes on: on a terminal a few lines repainted in place, elsewhere a line now
// and then. Who runs and who is held comes from heddled's API, as heddle ps has it; without
// heddled only the players' own word is known.
type demoView struct {
	out    io.Writer
	live   bool
	colors palette

	mu      sync.Mutex
	clients map[string]*heddlev1.Client // by name; nil: nobody watches
}

func (a *app) newDemoView(asJSON bool) *demoView {
	if asJSON {
		return &demoView{out: a.stderr}
	}
	return &demoView{out: a.stdout, live: a.screen.tty, colors: a.palette()}
}

func (v *demoView) begin(o *demoOptions, preferred bool) {
	if v.live {
		fmt.Fprint(v.out, cursorHide)
	}
	device := "this machine's GPU"
	if o.gpu == "soft" {
		device = "the software GPU (" + o.model + ")"
	}
	fmt.Fprintf(v.out, "Four runs of %s on %s.\n", o.duration, device)
	if preferred {
		fmt.Fprintln(v.out, "The players have real-time priority: they are the device, and a device does not wait for a processor.")
	} else if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		if warning := demoLoadWarning(string(text), runtime.NumCPU()); warning != "" {
			fmt.Fprintln(v.out, v.colors.paint(toneWarn, warning))
		}
	}
}

// demoLoadWarning says that others use the processors; empty if they do not. A service that waits
// for a processor is late, whoever shares the GPU.
func demoLoadWarning(loadavg string, processors int) string {
	var load float64
	if _, err := fmt.Sscan(loadavg, &load); err != nil || load < float64(processors)/2 {
		return ""
	}
	return fmt.Sprintf("This machine is busy with other things (load %.1f on %s): latencies will show that too.",
		load, plural(processors, "processor"))
}

func (v *demoView) end() {
	if v.live {
		fmt.Fprint(v.out, cursorShow)
	}
}

// watch follows the clients of a daemon until it goes.
func (v *demoView) watch(ctx context.Context, daemon *demoDaemon) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	conn := api.NewConn(daemon.socket)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer conn.Close()
		// When this fails the view shows less; what is measured does not depend on it.
		_ = conn.Watch(ctx, demoTick, func(list []*heddlev1.Client) error {
			clients := make(map[string]*heddlev1.Client, len(list))
			for _, c := range list {
				clients[c.GetName()] = c
			}
			v.mu.Lock()
			v.clients = clients
			v.mu.Unlock()
			return nil
		})
	}()
	return func() {
		cancel()
		<-done
		v.mu.Lock()
		v.clients = nil
		v.mu.Unlock()
	}
}

// phase shows one run until stop is called.
func (v *demoView) phase(ctx context.Context, title string, length time.Duration, players []*player) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		v.follow(ctx, title, length, players)
	}()
	return func() {
		cancel()
		<-done
	}
}

func (v *demoView) follow(ctx context.Context, title string, length time.Duration, players []*player) {
	tick := time.NewTicker(demoTick)
	defer tick.Stop()
	start, nextLine := time.Now(), demoLineEvery
	rows := make([]demoRow, len(players))
	for i, p := range players {
		rows[i].name = p.role.name
	}
	shown := false
	for {
		select {
		case <-ctx.Done():
			if shown {
				fmt.Fprintf(v.out, "\x1b[%dA%s", len(rows)+1, clearBelow)
			}
			return
		case <-tick.C:
		}
		for i, p := range players {
			client, yields := v.client(p.role.name)
			rows[i].update(p.last.Load(), client, yields)
		}
		elapsed := min(time.Since(start), length)
		if !v.live {
			if elapsed >= nextLine {
				nextLine += demoLineEvery
				fmt.Fprintln(v.out, demoLine(title, elapsed, rows))
			}
			continue
		}
		if shown {
			fmt.Fprintf(v.out, "\x1b[%dA", len(rows)+1)
		}
		shown = true
		fmt.Fprint(v.out, demoScreen(title, elapsed, length, rows, v.colors))
	}
}

// client returns what the daemon says of a client, and whether a more urgent one is busy.
func (v *demoView) client(name string) (client *heddlev1.Client, yields bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	client = v.clients[name]
	for _, other := range v.clients {
		if other.GetPriority() < client.GetPriority() && firstDevice(other).GetBusy() {
			yields = true
		}
	}
	return client, yields
}

func firstDevice(c *heddlev1.Client) *heddlev1.ClientDevice {
	if devices := c.GetDevices(); len(devices) > 0 {
		return devices[0]
	}
	return nil
}

// demoState is what a client does at one moment.
type demoState rune

const (
	demoIdle demoState = '.'
	demoRuns demoState = '#'
	demoHeld demoState = '-'
)

func (s demoState) word() string {
	switch s {
	case demoRuns:
		return "runs"
	case demoHeld:
		return "held"
	default:
		return "idle"
	}
}

func (s demoState) tone() tone {
	switch s {
	case demoRuns:
		return toneGood
	case demoHeld:
		return toneWarn
	default:
		return toneDim
	}
}

// demoRow is what is known of one player.
type demoRow struct {
	name   string
	done   uint64
	lastMs float64
	strip  []demoState // the last ticks
}

// update takes in a player's own status and, under Heddle, what the daemon says of it. A client of
// a bounded class waits at its gate most of the time while its own work runs, so a wait means that
// it is held only while it has somebody to yield to.
func (r *demoRow) update(status *playStatus, client *heddlev1.Client, yields bool) {
	state := demoIdle
	if status != nil {
		r.done, r.lastMs = status.Done, status.LastMs
		if status.Begun > status.Done {
			state = demoRuns
		}
	}
	if d := firstDevice(client); d != nil {
		switch {
		case d.GetHeld() && yields:
			state = demoHeld
		case d.GetBusy():
			state = demoRuns
		default:
			state = demoIdle
		}
	}
	r.strip = append(r.strip, state)
	if len(r.strip) > demoStrip {
		r.strip = r.strip[len(r.strip)-demoStrip:]
	}
}

func (r *demoRow) now() demoState {
	if len(r.strip) == 0 {
		return demoIdle
	}
	return r.strip[len(r.strip)-1]
}

// progress is how far it is, and in how many of the last ticks it ran or was held.
func (r *demoRow) progress() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%4d done, last %5.1f ms", r.done, r.lastMs)
	seen := make(map[demoState]int)
	for _, state := range r.strip {
		seen[state]++
	}
	for _, state := range []demoState{demoRuns, demoHeld} {
		if seen[state] > 0 {
			fmt.Fprintf(&text, ", %s %s", state.word(), formatShare(float64(seen[state])/float64(len(r.strip))))
		}
	}
	return text.String()
}

// demoLine is one line for a log.
func demoLine(title string, elapsed time.Duration, rows []demoRow) string {
	parts := make([]string, len(rows))
	for i := range rows {
		r := &rows[i]
		parts[i] = r.name + " " + r.progress()
	}
	return fmt.Sprintf("  %-22s %3.0f s  %s", title, elapsed.Seconds(), strings.Join(parts, "; "))
}

// demoScreen is a title with a bar and a line per player, each line cleared to its end.
func demoScreen(title string, elapsed, length time.Duration, rows []demoRow, colors palette) string {
	const bar = 24
	full := min(int(bar*elapsed/max(length, 1)), bar)
	var out strings.Builder
	// A line that wrapped would take two, and the next screen would begin one too low. Each line is
	// cleared before it is written: afterwards a cut one would lose its last column.
	fmt.Fprintf(&out, "%s%s%s [%s%s] %.1f s\n", wrapOff, clearLine, colors.paint(toneHeader, fmt.Sprintf("%-22s", title)),
		strings.Repeat("=", full), strings.Repeat(" ", bar-full), elapsed.Seconds())
	for i := range rows {
		r := &rows[i]
		state := r.now()
		shown := r.strip[max(0, len(r.strip)-demoShown):]
		fmt.Fprintf(&out, "%s  %-9s %s %s%s %s\n", clearLine, r.name, colors.paint(state.tone(), state.word()),
			paintStrip(shown, colors), strings.Repeat(" ", demoShown-len(shown)), r.progress())
	}
	out.WriteString(wrapOn)
	return out.String()
}

// paintStrip draws the last moments, runs of one state in one colour.
func paintStrip(strip []demoState, colors palette) string {
	var out strings.Builder
	for i := 0; i < len(strip); {
		n := i
		for n < len(strip) && strip[n] == strip[i] {
			n++
		}
		out.WriteString(colors.paint(strip[i].tone(), strings.Repeat(string(strip[i]), n-i)))
		i = n
	}
	return out.String()
}
