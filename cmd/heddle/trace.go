package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/heddle-project/heddle/runtime/api"
	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
	"github.com/heddle-project/heddle/runtime/timeline"
)

const traceRecordLong = `Record what clients do with the GPUs, as Chrome trace events: ui.perfetto.dev and chrome://tracing
open the file.

Each client is a process with tracks for every GPU that it uses: the calls that launch, the device
time of each stream, the time for which launches were held and why, and the idle times beside their
predictions. Recording ends after --duration, or with Ctrl-C; the file is complete in both cases.

While it runs every launch of those clients costs a little more. Clients that attach meanwhile are
recorded, too, unless --client or --device leaves them out. Root and the administrators' group may
record; the file is readable by its owner alone, since it names the programs of others.`

const traceRecordExample = `  heddle trace record -o t.json --duration 10s
  heddle trace record -o t.json --client 3 --client 4
  heddle trace record -o - --duration 1s | gzip > t.json.gz`

type traceOptions struct {
	output   string
	duration time.Duration
	devices  []string
	clients  []uint
}

func newTraceCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trace",
		Short: "Record a timeline of launches, waits and idle times",
		Args:  noArgs,
		RunE:  showHelp,
	}
	cmd.AddCommand(newTraceRecordCmd(a))
	return cmd
}

func newTraceRecordCmd(a *app) *cobra.Command {
	var o traceOptions
	cmd := &cobra.Command{
		Use:               "record -o FILE [--duration TIME] [--device GPU]... [--client ID]...",
		Short:             "Write Chrome trace events of what clients do",
		Long:              traceRecordLong,
		Example:           traceRecordExample,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case o.output == "":
				return usagef("give a file with --output, - for standard output")
			case cmd.Flags().Changed("duration") && o.duration <= 0:
				return usagef("--duration %s: must be more than zero", o.duration)
			}
			return a.recordTrace(cmd.Context(), &o)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.output, "output", "o", "", "`file` to write, - for standard output")
	flags.DurationVar(&o.duration, "duration", 0, "how long to record (default until Ctrl-C)")
	flags.StringArrayVar(&o.devices, "device", nil, "only this `GPU`: index, UUID or its beginning (default all)")
	flags.UintSliceVar(&o.clients, "client", nil, "only the client with this `ID`, as heddle ps shows it (default all)")
	completeWithNothing(cmd, "duration")
	mustComplete(cmd, "device", a.completeDevices)
	mustComplete(cmd, "client", a.completeClients)
	return cmd
}

// recordTrace leaves a complete file behind whatever ends the recording, or none.
func (a *app) recordTrace(ctx context.Context, o *traceOptions) error {
	req, err := a.traceRequest(ctx, o)
	if err != nil {
		return err
	}
	out, err := a.createOutput(o.output)
	if err != nil {
		return err
	}
	// A second signal ends heddle at once, as if there were no handler.
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	r := &recorder{out: timeline.NewWriter(out, timeline.Options{Class: className, Tool: "heddle " + buildVersion()}), begun: time.Now()}
	showing := r.show(ctx, a.stderr)
	conn := api.NewConn(a.socket)
	defer conn.Close()
	err = conn.RecordTrace(ctx, req, r.add)
	if ctx.Err() != nil && r.failed == nil {
		err = nil // the user has seen enough
	}
	stop()
	<-showing
	if r.failed != nil || err != nil && !r.started {
		return errors.Join(a.explain(err, a.timeout), out.discard())
	}
	if closeErr := errors.Join(r.out.Close(), out.commit()); closeErr != nil {
		return errors.Join(fmt.Errorf("%s: %w", o.output, closeErr), out.discard())
	}
	fmt.Fprintln(a.stderr, r.result(o.output))
	return a.explain(err, a.timeout)
}

// traceRequest finds the devices that are meant, and that heddled is there at all.
func (a *app) traceRequest(ctx context.Context, o *traceOptions) (*heddlev1.RecordTraceRequest, error) {
	req := &heddlev1.RecordTraceRequest{}
	if o.duration != 0 {
		req.Duration = durationpb.New(o.duration)
	}
	for _, id := range o.clients {
		req.Clients = append(req.Clients, uint64(id))
	}
	err := a.call(ctx, func(ctx context.Context, conn *api.Conn) error {
		devices, err := conn.Devices(ctx)
		if err != nil {
			return err
		}
		for _, d := range o.devices {
			uuid, err := resolveDevice(devices, d)
			if err != nil {
				return usagef("--device: %w", err)
			}
			req.Devices = append(req.Devices, uuid)
		}
		return nil
	})
	return req, err
}

// recorder draws what comes and says how much that is.
type recorder struct {
	begun time.Time

	mu      sync.Mutex
	out     *timeline.Writer
	started bool
	failed  error // to write
}

func (r *recorder) add(m *heddlev1.RecordTraceResponse) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.started = true
	r.failed = r.out.Add(m)
	return r.failed
}

// show keeps a line on a terminal up to date until ctx ends; the channel is closed when it has ended.
func (r *recorder) show(ctx context.Context, stderr io.Writer) <-chan struct{} {
	done := make(chan struct{})
	f, ok := stderr.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		close(done)
		return done
	}
	go func() {
		defer close(done)
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				fmt.Fprint(stderr, "\r"+clearLine)
				return
			case <-ticker.C:
				fmt.Fprintf(stderr, "\r%s: %s%s", time.Since(r.begun).Round(time.Second), r.counts(), clearLine)
			}
		}
	}()
	return done
}

func (r *recorder) counts() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.out.Summary()
	return fmt.Sprintf("%s, launches %d (measured %d), holds %d, idle times %d, missing events %d",
		plural(s.Clients, "client"), s.Launches, s.Measured, s.Holds, s.Gaps, s.Missing)
}

func (r *recorder) result(file string) string {
	text := fmt.Sprintf("recorded %s: %s", time.Since(r.begun).Round(10*time.Millisecond), r.counts())
	if file != "-" {
		text += "; ui.perfetto.dev opens " + printable(file)
	}
	return text
}
