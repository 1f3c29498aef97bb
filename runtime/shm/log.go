package shm

import (
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/errdefs"
)

// LogRecord is one line that an interposer wrote for the daemon's log.
type LogRecord struct {
	TimeNs uint64
	Level  uint32 // abi.Log values; a value above abi.LogError was read as that
	Text   string // printable, valid UTF-8, no line breaks
}

// LogReader follows the log ring of one client. The client overwrites the oldest records when
// nobody reads, so that logging never blocks it; what was missed is counted.
type LogReader struct {
	view    ClientView
	next    uint64 // number of the next record to read
	stalled bool   // record next was claimed but not complete at the last look
}

// NewLogReader begins with the oldest record that is still in the ring.
func NewLogReader(v ClientView) *LogReader { return &LogReader{view: v} }

// Read calls f for every new record, oldest first, and returns how many were lost. One call looks
// at no more records than the ring holds, however fast the client writes.
func (r *LogReader) Read(f func(LogRecord)) (lost uint64, err error) {
	if err := r.view.Check(); err != nil {
		return 0, err
	}
	head := r.head()
	if head < r.next {
		return 0, errdefs.Errorf(errdefs.Corrupt, "log head went back from %d to %d", r.next, head)
	}
	if head-r.next > abi.LogRecords {
		lost = head - r.next - abi.LogRecords
		r.next = head - abi.LogRecords
		r.stalled = false
	}
	for r.next != head {
		record, state, err := r.record(r.next)
		if err != nil {
			return lost, err
		}
		switch {
		case state == recordComplete:
			f(record)
		case state == recordUnfinished && !r.stalled:
			// Its writer is in the middle of it, or died there: one more look decides.
			r.stalled = true
			return lost, nil
		default:
			lost++
		}
		r.stalled = false
		r.next++
	}
	return lost, nil
}

func (r *LogReader) head() uint64 { return atomic.LoadUint64(&r.view.seg.Process.LogHead) }

type recordState int

const (
	recordComplete recordState = iota
	recordUnfinished
	recordOverwritten
)

// record copies record n. A writer that laps the reader begins by claiming a number, so the head
// read after the copy tells whether the copied bytes can be a later record's.
func (r *LogReader) record(n uint64) (LogRecord, recordState, error) {
	shared := &r.view.seg.Log[n%abi.LogRecords]
	if sequence := atomic.LoadUint64(&shared.Sequence); sequence < n+1 {
		return LogRecord{}, recordUnfinished, nil
	} else if sequence > n+1 {
		return LogRecord{}, recordOverwritten, nil
	}
	var text [abi.LogText]byte
	record := LogRecord{
		TimeNs: atomic.LoadUint64(&shared.TimeNs),
		Level:  min(atomic.LoadUint32(&shared.Level), abi.LogError),
	}
	length := atomic.LoadUint32(&shared.Length)
	copyWords(text[:], shared.Text[:])
	if r.head() > n+abi.LogRecords {
		return LogRecord{}, recordOverwritten, nil
	}
	if length > abi.LogText {
		return LogRecord{}, 0, errdefs.Errorf(errdefs.Corrupt, "log record %d: text of %d bytes, at most %d fit", n, length, abi.LogText)
	}
	record.Text = Printable(text[:length])
	return record, recordComplete, nil
}

// Printable makes foreign bytes fit for a terminal and a log: invalid UTF-8, control and format
// characters become U+FFFD, space of every kind becomes a space, the ends are trimmed.
func Printable(b []byte) string {
	var out strings.Builder
	out.Grow(len(b))
	for len(b) > 0 {
		c, n := utf8.DecodeRune(b)
		b = b[n:]
		switch {
		case unicode.IsSpace(c):
			c = ' '
		case !unicode.IsPrint(c):
			c = utf8.RuneError
		}
		out.WriteRune(c)
	}
	return strings.TrimSpace(out.String())
}
