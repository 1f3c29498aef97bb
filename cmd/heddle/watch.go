package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/heddle-project/heddle/runtime/api"
	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
)

const (
	// More often than this nobody can read, and heddled measures no finer.
	minInterval = 100 * time.Millisecond
	maxInterval = time.Minute
)

// Terminal control: back to the top left, clear to the end of the line, clear what is below.
const (
	cursorHome = "\x1b[H"
	clearLine  = "\x1b[K"
	clearBelow = "\x1b[J"
	clearAll   = "\x1b[2J"
	cursorHide = "\x1b[?25l"
	cursorShow = "\x1b[?25h"
	wrapOff    = "\x1b[?7l"
	wrapOn     = "\x1b[?7h"
)

// watchClients shows the list until the user has seen enough: an interrupt is the way to end it,
// so that is no error. It stays when heddled restarts, but not when it was never there.
func (a *app) watchClients(ctx context.Context, o *psOptions) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if a.screen.tty && !o.asJSON {
		fmt.Fprint(a.stdout, cursorHide+clearAll)
		defer fmt.Fprint(a.stdout, cursorShow)
	}
	seen := false
	for {
		err := a.watchOnce(ctx, o, &seen)
		switch {
		case ctx.Err() != nil:
			return nil
		case !seen, exitCode(err) != exitUnreachable:
			return err
		}
		a.warn("ps", err.Error()+"; waiting for it")
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}

// watchOnce follows one connection until it ends. It always returns an error.
func (a *app) watchOnce(ctx context.Context, o *psOptions, seen *bool) error {
	conn := api.NewConn(a.socket)
	defer conn.Close()
	var names deviceNames
	err := a.call(ctx, func(ctx context.Context, conn *api.Conn) error {
		devices, err := conn.Devices(ctx)
		names = nameDevices(devices)
		return err
	})
	if err != nil {
		return err
	}
	err = conn.Watch(ctx, o.interval, func(clients []*heddlev1.Client) error {
		*seen = true
		return a.showClients(ofTenant(clients, o.tenant), names, o)
	})
	if err == nil {
		return unreachablef("heddled at %s has ended the connection", a.socket)
	}
	return a.explain(err, a.timeout)
}

// showClients shows one list of a watch: on a terminal in place of the last, elsewhere below it.
func (a *app) showClients(clients []*heddlev1.Client, names deviceNames, o *psOptions) error {
	views := viewClients(clients, names)
	if o.asJSON {
		return a.printJSONLine(map[string]any{"clients": views})
	}
	a.measure()
	var text strings.Builder
	if len(views) == 0 {
		text.WriteString(noClients(o.tenant) + "\n")
	} else if err := clientsTable(views).write(&text, a.width(o.noTrunc), a.palette()); err != nil {
		return err
	}
	if !a.screen.tty {
		_, err := fmt.Fprintln(a.stdout, text.String())
		return err
	}
	shown := firstLines(text.String(), a.screen.height)
	_, err := fmt.Fprint(a.stdout, cursorHome+strings.ReplaceAll(shown, "\n", clearLine+"\n")+clearBelow)
	return err
}

// firstLines cuts a text to the height of a terminal, where a line too many would scroll the first
// away. The last line of the terminal stays free for the cursor.
func firstLines(text string, height int) string {
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	if height < 3 || len(lines) < height {
		return text
	}
	kept := lines[:height-2]
	return strings.Join(kept, "") + fmt.Sprintf("and %d more\n", len(lines)-len(kept))
}

func ofTenant(clients []*heddlev1.Client, tenant string) []*heddlev1.Client {
	if tenant == "" {
		return clients
	}
	var kept []*heddlev1.Client
	for _, c := range clients {
		if c.GetTenant() == tenant {
			kept = append(kept, c)
		}
	}
	return kept
}
