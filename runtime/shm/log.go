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

// LogReader follows the log ring of one client.
type LogReader struct{ ring }

// NewLogReader begins with the oldest record that is still in the ring.
func NewLogReader(v ClientView) *LogReader {
	return &LogReader{ring{view: v, what: "log", head: &v.seg.Process.LogHead, size: abi.LogRecords}}
}

// Read calls f for every new record, oldest first, and returns how many were lost. One call looks
// at no more records than the ring holds, however fast the client writes.
func (r *LogReader) Read(f func(LogRecord)) (lost uint64, err error) {
	return r.read(func(n uint64) (recordState, error) {
		record, state, err := r.record(n)
		if err == nil && state == recordComplete {
			f(record)
		}
		return state, err
	})
}

func (r *LogReader) record(n uint64) (LogRecord, recordState, error) {
	shared := &r.view.seg.Log[n%abi.LogRecords]
	if state := stateOf(n, &shared.Sequence); state != recordComplete {
		return LogRecord{}, state, nil
	}
	var text [abi.LogText]byte
	record := LogRecord{
		TimeNs: atomic.LoadUint64(&shared.TimeNs),
		Level:  min(atomic.LoadUint32(&shared.Level), abi.LogError),
	}
	length := atomic.LoadUint32(&shared.Length)
	copyWords(text[:], shared.Text[:])
	if state := r.copied(n); state != recordComplete {
		return LogRecord{}, state, nil
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
