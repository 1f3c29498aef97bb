package daemon

import (
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	// logBufferMax is how much log may wait for a reader that is slow.
	logBufferMax = 1 << 20
	// logPatience is how long the end of heddled waits for that reader.
	logPatience = time.Second
)

// LogWriter lets nobody who logs wait: a full pipe or a hanging journal must
// not hold locks that clients need. Lines that find no room are dropped, and
// counted in a line of their own.
type LogWriter struct {
	w    io.Writer
	done chan struct{}

	mu      sync.Mutex
	wake    *sync.Cond
	buffer  []byte
	dropped int
	closed  bool
}

// NewLogWriter returns a LogWriter to w. It must be closed.
func NewLogWriter(w io.Writer) *LogWriter {
	l := &LogWriter{w: w, done: make(chan struct{})}
	l.wake = sync.NewCond(&l.mu)
	go l.run()
	return l
}

// Write takes whole lines; it never fails.
func (l *LogWriter) Write(lines []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.buffer)+len(lines) > logBufferMax {
		l.dropped++
		return len(lines), nil
	}
	l.buffer = append(l.buffer, lines...)
	l.wake.Signal()
	return len(lines), nil
}

// run writes what waits until Close.
func (l *LogWriter) run() {
	defer close(l.done)
	var batch []byte
	for {
		l.mu.Lock()
		for len(l.buffer) == 0 && !l.closed {
			l.wake.Wait()
		}
		batch, l.buffer = l.buffer, batch[:0]
		dropped, closed := l.dropped, l.closed
		l.dropped = 0
		l.mu.Unlock()
		_, _ = l.w.Write(batch) // there is no better place to say that the log is gone
		if dropped > 0 {
			fmt.Fprintf(l.w, "heddled: %d log lines were dropped: nobody read them in time\n", dropped)
		}
		if closed {
			return
		}
	}
}

// Close writes what waits, as long as somebody reads it within a second.
func (l *LogWriter) Close() error {
	l.mu.Lock()
	l.closed = true
	l.wake.Signal()
	l.mu.Unlock()
	select {
	case <-l.done:
	case <-time.After(logPatience):
	}
	return nil
}
