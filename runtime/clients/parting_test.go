package clients

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-project/heddle/runtime/wire"
)

// ending is one way in which a program ends or leaves, and the reason that heddled is to give.
type ending struct {
	act    func(*wire.Conn) error
	reason string
	lives  bool // until its stdin is closed
}

// partings are the ways by name. What they do happens in a process of its own.
func partings() map[string]ending {
	return map[string]ending{
		"returns": {func(*wire.Conn) error { return nil }, errDied.Error(), false},
		"is killed": {func(*wire.Conn) error {
			return unix.Kill(os.Getpid(), unix.SIGKILL)
		}, errDied.Error(), false},
		"is killed inside a message": {func(c *wire.Conn) error {
			if _, err := c.Write(wire.Encode(nil, wire.Device{Slot: 1, UUID: gpu1})[:9]); err != nil {
				return err
			}
			return unix.Kill(os.Getpid(), unix.SIGKILL)
		}, errDied.Error(), false},
		"says goodbye and is killed": {func(c *wire.Conn) error {
			if err := c.WriteMessage(wire.Bye{}); err != nil {
				return err
			}
			return unix.Kill(os.Getpid(), unix.SIGKILL)
		}, errSaidBye.Error(), false},
		"closes its connection": {func(c *wire.Conn) error {
			if err := c.Close(); err != nil {
				return err
			}
			return awaitClosedStdin()
		}, errDisconnected.Error(), true},
		"executes another program": {func(*wire.Conn) error {
			return unix.Exec("/bin/sh", []string{"sh", "-c", "read line"}, nil)
		}, errDisconnected.Error(), true},
	}
}

func awaitClosedStdin() error {
	_, err := os.Stdin.Read(make([]byte, 1))
	return fmt.Errorf("stdin: %w", err)
}

// A killed program, one that returns and one that only closes its connection look alike on a
// socket. Each end is told by its own name, whatever was noticed first.
func TestTheReasonOfAnEndDoesNotDependOnWhatWasNoticedFirst(t *testing.T) {
	for name, end := range partings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log syncBuffer
			s := serve(t, func(o *Options) { o.Log = slog.New(slog.NewJSONHandler(&log, nil)) })
			// There is something to tell the programs, which do not read it: it is lost, or cannot be
			// sent any more.
			attach(t, s.path, withPriority("low", 7)).open(0, gpu0)
			const programs = 8
			var stop []func()
			for range programs {
				cmd := exec.CommandContext(t.Context(), os.Args[0])
				cmd.Env = append(os.Environ(), programVariable+"="+s.path, endVariable+"="+name, "GORACE=atexit_sleep_ms=0")
				in, err := cmd.StdinPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				stop = append(stop, func() {
					_ = in.Close()
					_ = cmd.Wait() // killed or not, as it was told
				})
			}
			if !end.lives {
				for _, f := range stop {
					f()
				}
			}
			left := func() int { return strings.Count(log.String(), `"msg":"client left"`) }
			eventually(t, "all have left", func() bool { return left() == programs })
			if end.lives {
				for _, f := range stop {
					f()
				}
			}
			if got := strings.Count(log.String(), fmt.Sprintf(`"reason":%q`, end.reason)); got != programs {
				t.Errorf("%d of %d left because: %s\n%s", got, programs, end.reason, log.String())
			}
			if got := s.Totals(); got.Evicted != 0 {
				t.Errorf("%d were evicted", got.Evicted)
			}
		})
	}
}

func TestAHalfMessageOfALivingProgramIsAnEviction(t *testing.T) {
	s := serve(t)
	p := attach(t, s.path, hello("rude"))
	if _, err := p.conn.Write(wire.Encode(nil, wire.Device{})[:9]); err != nil {
		t.Fatal(err)
	}
	if err := p.conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is evicted", func() bool { return s.Totals().Evicted == 1 })
}

func TestTheKernelsMarkOfAnExitingThread(t *testing.T) {
	tests := []struct {
		name, stat string
		want, ok   bool
	}{
		{"a thread that runs", "7 (sh) S 1 7 7 0 -1 4194304 9 0", false, true},
		{"one that exits", "7 (sh) R 1 7 7 0 -1 4194308 9 0", true, true},
		{"a name that looks like fields", "7 (a) R 1 2 3 4 5 4 (b) S 1 7 7 0 -1 4194304 9 0", false, true},
		{"too few fields", "7 (sh) S 1 7", false, false},
		{"nothing", "", false, false},
	}
	for _, tt := range tests {
		got, err := isExiting(tt.stat)
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("%s: %v, %v", tt.name, got, err)
		}
	}
	if all, err := allExiting("/proc/self/task"); err != nil || all {
		t.Errorf("this process is on its way out: %v, %v", all, err)
	}
}

// syncBuffer is a log that a test reads while it is written.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
