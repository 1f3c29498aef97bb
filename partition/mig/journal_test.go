package mig

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/gpu"
)

func lines(t testing.TB, records ...record) []byte {
	t.Helper()
	var all []byte
	for i := range records {
		line, err := records[i].line()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, line...)
	}
	return all
}

var some = []record{
	{Transaction: 1, Boot: "b", Device: "01000000-0000-0000-0000-000000000000", Phase: begun, Ours: []owned{{place{19, 3}, 7, []string{"u"}}}, Want: []place{{9, 4}}},
	{Transaction: 1, Boot: "b", Device: "01000000-0000-0000-0000-000000000000", Phase: intended, Step: &place{9, 4}},
	{Transaction: 1, Boot: "b", Device: "01000000-0000-0000-0000-000000000000", Phase: quarantined, Reason: "why\nnot"},
}

func TestAJournalIsReadUpToWhereItWasCut(t *testing.T) {
	whole := lines(t, some...)
	first := len(lines(t, some[0]))
	second := first + len(lines(t, some[1]))
	for cut := range len(whole) + 1 {
		path := filepath.Join(t.TempDir(), "journal")
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		j, got, err := openJournal(path)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		want := 0
		for _, end := range []int{first, second, len(whole)} {
			if cut >= end {
				want++
			}
		}
		if diff := cmp.Diff(some[:want], got, cmpopts.EquateEmpty(), cmp.AllowUnexported(owned{})); diff != "" {
			t.Fatalf("cut at %d: %s", cut, diff)
		}
		// And it is written on where it ends.
		if err := j.write(&some[1]); err != nil {
			t.Fatal(err)
		}
		if err := j.close(); err != nil {
			t.Fatal(err)
		}
		after, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(after, lines(t, append(some[:want:want], some[1])...)) {
			t.Fatalf("cut at %d, written on: %q, %v", cut, after, err)
		}
	}
}

func TestADamagedJournalIsNotGuessedAt(t *testing.T) {
	whole := lines(t, some...)
	whole[len(whole)/4] ^= 1
	path := filepath.Join(t.TempDir(), "journal")
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Journal: path}); !errors.Is(err, errdefs.ErrCorrupt) || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadFile(path); err != nil || !bytes.Equal(left, whole) {
		t.Errorf("it was changed: %v", err)
	}
}

func FuzzJournal(f *testing.F) {
	f.Add(lines(f, some...))
	f.Add([]byte("00000000 {}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		records, good, err := readRecords(bytes.NewReader(data))
		if err != nil {
			return
		}
		if good < 0 || good > int64(len(data)) {
			t.Fatalf("%d of %d bytes are good", good, len(data))
		}
		e := &Executor{devices: map[gpu.UUID]*state{}}
		for i := range records {
			_ = e.replay(&records[i]) // it may refuse
		}
	})
}
