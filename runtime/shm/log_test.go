package shm

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/errdefs"
)

// writeLog is the interposer's side: claim a number, fill the record, complete it.
func writeLog(seg *abi.ClientSegment, text string) {
	n := atomic.AddUint64(&seg.Process.LogHead, 1) - 1
	fillRecord(seg, n, text)
}

func fillRecord(seg *abi.ClientSegment, n uint64, text string) {
	r := &seg.Log[n%abi.LogRecords]
	r.TimeNs = n * 10
	r.Level = abi.LogWarn
	r.Length = uint32(copy(r.Text[:], text))
	atomic.StoreUint64(&r.Sequence, n+1)
}

func readTexts(t *testing.T, r *LogReader) (texts []string, lost uint64) {
	t.Helper()
	lost, err := r.Read(func(rec LogRecord) { texts = append(texts, rec.Text) })
	if err != nil {
		t.Fatal(err)
	}
	return texts, lost
}

func TestLogReadsEveryRecordOnce(t *testing.T) {
	seg, v := newSegment()
	r := NewLogReader(v)
	for round := range 5 {
		var want []string
		for i := range 30 {
			want = append(want, fmt.Sprintf("round %d line %d", round, i))
			writeLog(seg, want[i])
		}
		got, lost := readTexts(t, r)
		if diff := cmp.Diff(want, got); diff != "" || lost != 0 {
			t.Errorf("round %d lost %d (-want +got):\n%s", round, lost, diff)
		}
	}
}

func TestLogCountsWhatWasOverwritten(t *testing.T) {
	seg, v := newSegment()
	r := NewLogReader(v)
	for i := range abi.LogRecords + 10 {
		writeLog(seg, fmt.Sprint(i))
	}
	got, lost := readTexts(t, r)
	if lost != 10 || len(got) != abi.LogRecords || got[0] != "10" {
		t.Errorf("lost %d, got %d from %q", lost, len(got), got[0])
	}
}

func TestLogWaitsOnceForAnUnfinishedRecord(t *testing.T) {
	seg, v := newSegment()
	r := NewLogReader(v)
	writeLog(seg, "first")
	claimed := atomic.AddUint64(&seg.Process.LogHead, 1) - 1
	writeLog(seg, "third")
	if got, lost := readTexts(t, r); lost != 0 || len(got) != 1 {
		t.Errorf("first look: %q, lost %d", got, lost)
	}
	fillRecord(seg, claimed, "second")
	if got, lost := readTexts(t, r); lost != 0 || cmp.Diff([]string{"second", "third"}, got) != "" {
		t.Errorf("second look: %q, lost %d", got, lost)
	}
	// A writer that died in the middle stops the log for one look only.
	atomic.AddUint64(&seg.Process.LogHead, 1)
	writeLog(seg, "after the dead one")
	if got, _ := readTexts(t, r); len(got) != 0 {
		t.Errorf("did not wait: %q", got)
	}
	if got, lost := readTexts(t, r); lost != 1 || len(got) != 1 || got[0] != "after the dead one" {
		t.Errorf("after waiting: %q, lost %d", got, lost)
	}
}

// TestLogIsNeverTornByAWriterThatLapsTheReader runs the two sides against each other. The writer
// does what the interposer does, with atomic stores throughout, so that the race detector can judge
// the reader.
func TestLogIsNeverTornByAWriterThatLapsTheReader(t *testing.T) {
	const records = 50_000
	seg, v := newSegment()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := range uint64(records) {
			r := &seg.Log[n%abi.LogRecords]
			atomic.StoreUint64(&seg.Process.LogHead, n+1)
			atomic.StoreUint64(&r.Sequence, 0)
			atomic.StoreUint64(&r.TimeNs, n)
			atomic.StoreUint32(&r.Length, abi.LogText)
			words := (*[abi.LogText / 8]uint64)(bytesAsWords(r.Text[:]))
			for i := range words {
				atomic.StoreUint64(&words[i], 0x0101010101010101*('a'+n%26))
			}
			atomic.StoreUint64(&r.Sequence, n+1)
		}
	}()
	r := NewLogReader(v)
	got, lost, last := uint64(0), uint64(0), uint64(0)
	look := func() {
		missed, err := r.Read(func(rec LogRecord) {
			if got != 0 && rec.TimeNs <= last {
				t.Errorf("record %d after %d", rec.TimeNs, last)
			}
			got, last = got+1, rec.TimeNs
			want := strings.Repeat(string(rune('a'+rec.TimeNs%26)), abi.LogText)
			if rec.Text != want {
				t.Errorf("record %d is torn: %q", rec.TimeNs, rec.Text)
			}
		})
		if err != nil {
			t.Error(err)
		}
		lost += missed
	}
	for running := true; running && !t.Failed(); {
		select {
		case <-done:
			running = false
		default:
			look()
		}
	}
	<-done
	look()
	look()
	if got+lost != records {
		t.Errorf("read %d and lost %d of %d", got, lost, records)
	}
}

func TestLogOfALiarIsCorrupt(t *testing.T) {
	t.Run("a head that goes back", func(t *testing.T) {
		seg, v := newSegment()
		r := NewLogReader(v)
		writeLog(seg, "x")
		readTexts(t, r)
		seg.Process.LogHead = 0
		if _, err := r.Read(func(LogRecord) {}); !errors.Is(err, errdefs.ErrCorrupt) {
			t.Errorf("Read = %v", err)
		}
	})
	t.Run("a text longer than its place", func(t *testing.T) {
		seg, v := newSegment()
		writeLog(seg, "x")
		seg.Log[0].Length = abi.LogText + 1
		if _, err := NewLogReader(v).Read(func(LogRecord) {}); !errors.Is(err, errdefs.ErrCorrupt) {
			t.Errorf("Read = %v", err)
		}
	})
	t.Run("a level that is none counts as an error", func(t *testing.T) {
		seg, v := newSegment()
		writeLog(seg, "x")
		seg.Log[0].Level = 77
		_, err := NewLogReader(v).Read(func(r LogRecord) {
			if r.Level != abi.LogError {
				t.Errorf("level = %d", r.Level)
			}
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestPrintable(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain text stays", "attach: no daemon", "attach: no daemon"},
		{"letters of all scripts stay", "Gerät größer 日本", "Gerät größer 日本"},
		{"terminal escapes lose their teeth", "\x1b[2Jhi", "\uFFFD[2Jhi"},
		{"line breaks cannot fake a second line", "a\nlevel=ERROR b", "a level=ERROR b"},
		{"invalid bytes are replaced", "a\xff\xfeb", "a\uFFFD\uFFFDb"},
		{"writing direction cannot be turned", "a\u202eb", "a\uFFFDb"},
		{"ends are trimmed", "  x\t", "x"},
		{"nothing stays nothing", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Printable([]byte(tt.in)); got != tt.want {
				t.Errorf("Printable(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

func FuzzLogRing(f *testing.F) {
	f.Add(uint64(1), uint64(1), uint32(5), []byte("hello"))
	f.Add(uint64(1<<63), uint64(0), uint32(200), []byte{0xff, 0x1b})
	f.Add(uint64(70), uint64(7), uint32(104), []byte(strings.Repeat("x", 200)))
	f.Fuzz(func(t *testing.T, head, sequence uint64, length uint32, text []byte) {
		seg, v := newSegment()
		seg.Process.LogHead = head
		for i := range seg.Log {
			seg.Log[i].Sequence = sequence + uint64(i)
			seg.Log[i].Length = length
			copy(seg.Log[i].Text[:], text)
		}
		r := NewLogReader(v)
		for range 2 {
			n := 0
			_, err := r.Read(func(rec LogRecord) {
				n++
				if !utf8.ValidString(rec.Text) || strings.ContainsFunc(rec.Text, unicode.IsControl) {
					t.Fatalf("text %q is not printable", rec.Text)
				}
			})
			if err != nil {
				requireKind(t, err)
			}
			if n > abi.LogRecords {
				t.Fatalf("%d records from a ring of %d", n, abi.LogRecords)
			}
		}
	})
}
