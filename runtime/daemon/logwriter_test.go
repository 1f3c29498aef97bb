package daemon

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestLogLinesComeOutInOrderAndCloseWaitsForThem(t *testing.T) {
	var out bytes.Buffer
	l := NewLogWriter(&out)
	var want strings.Builder
	for i := range 1000 {
		line := fmt.Sprintln("line", i)
		want.WriteString(line)
		if n, err := io.WriteString(l, line); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if out.String() != want.String() {
		t.Errorf("%d bytes came out, want %d", out.Len(), want.Len())
	}
}

// stuck is a pipe that nobody reads, until it is opened.
type stuck struct {
	open chan struct{}
	got  bytes.Buffer
}

func (s *stuck) Write(p []byte) (int, error) {
	<-s.open
	return s.got.Write(p)
}

func TestAReaderThatHangsHoldsNobodyAndDroppedLinesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &stuck{open: make(chan struct{})}
		l := NewLogWriter(out)
		line := []byte(strings.Repeat("x", 1023) + "\n")
		_, _ = l.Write(line) // taken by the writer, which hangs with it
		synctest.Wait()
		for range 1024 + 7 {
			_, _ = l.Write(line)
		}
		close(out.open)
		synctest.Wait()
		if got := out.got.String(); strings.Count(got, "x\n") != 1025 || !strings.Contains(got, ": 7 log lines were dropped") {
			t.Errorf("%d lines: %s", strings.Count(got, "x\n"), got[max(0, len(got)-100):])
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestCloseGivesUpOnAReaderThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &stuck{open: make(chan struct{})}
		l := NewLogWriter(out)
		_, _ = l.Write([]byte("x\n"))
		begin := time.Now()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if waited := time.Since(begin); waited != logPatience {
			t.Errorf("waited %v", waited)
		}
		close(out.open)
	})
}
