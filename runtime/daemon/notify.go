package daemon

import (
	"context"
	"log/slog"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"
)

// notifier tells systemd how heddled is, if systemd asked for it.
type notifier struct{ log *slog.Logger }

func (n notifier) send(state string) {
	if _, err := systemd.SdNotify(false, state); err != nil {
		n.log.Debug("tell systemd", "error", err)
	}
}

func (n notifier) ready()             { n.send(systemd.SdNotifyReady) }
func (n notifier) stopping()          { n.send(systemd.SdNotifyStopping) }
func (n notifier) status(text string) { n.send("STATUS=" + text) }

// watchdog pings at half of the interval that systemd allows, until ctx ends.
// Before each ping it calls touch, which does not return if heddled hangs.
func (n notifier) watchdog(ctx context.Context, touch func()) error {
	interval, err := systemd.SdWatchdogEnabled(false)
	if err != nil || interval == 0 {
		return nil // not asked for
	}
	ticker := time.NewTicker(interval / 2)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			touch()
			n.send(systemd.SdNotifyWatchdog)
		}
	}
}
