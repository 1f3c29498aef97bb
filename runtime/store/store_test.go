package store

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"github.com/heddle-project/heddle/runtime/errdefs"
)

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func reopen(t *testing.T, s *Store, dir string) *Store {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return open(t, dir)
}

func TestAGenerationBeginsWhenItIsSaidTo(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	for want := range uint64(3) {
		if s.Generation() != want {
			t.Errorf("generation %d after %d were begun", s.Generation(), want)
		}
		s = reopen(t, s, dir) // which begins none
		if err := s.Begin(); err != nil {
			t.Fatal(err)
		}
		if s.Generation() != want+1 {
			t.Errorf("the generation that began is %d, want %d", s.Generation(), want+1)
		}
		s = reopen(t, s, dir)
	}
}

func TestEverythingSurvivesAReopen(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	secret := s.Secret()
	want := Override{Priority: new(uint32(2))}
	for _, err := range []error{
		s.SetTenant("a", want),
		s.SetTenant("gone", want),
		s.SetTenant("gone", Override{}),
		s.SetClient(7, Override{Weight: new(uint32(300))}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	s = reopen(t, s, dir)
	if s.Secret() != secret {
		t.Error("another secret")
	}
	tenants, err := s.Tenants()
	if diff := cmp.Diff(map[string]Override{"a": want}, tenants); diff != "" || err != nil {
		t.Error(err, diff)
	}
	clients, err := s.Clients()
	if diff := cmp.Diff(map[uint64]Override{7: {Weight: new(uint32(300))}}, clients); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestReservedNumbersNeverComeTwice(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	for _, want := range []uint64{1, 101} {
		if got, err := s.ReserveIDs(100); err != nil || got != want {
			t.Errorf("got %d, %v, want %d", got, err, want)
		}
	}
	s = reopen(t, s, dir)
	if got, err := s.ReserveIDs(1); err != nil || got != 201 {
		t.Errorf("after a reopen: %d, %v", got, err)
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	made := func(t *testing.T, dir string) string {
		t.Helper()
		s := open(t, dir)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, FileName)
	}
	tests := []struct {
		name    string
		prepare func(t *testing.T, dir string)
		kind    error
	}{
		{"a second instance is told so", func(t *testing.T, dir string) {
			t.Helper()
			open(t, dir)
		}, errdefs.ErrBusy},
		{"a file of something else", func(t *testing.T, dir string) {
			t.Helper()
			text := strings.Repeat("not a database\n", 2000)
			if err := os.WriteFile(filepath.Join(dir, FileName), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}, errdefs.ErrCorrupt},
		{"a file cut in half", func(t *testing.T, dir string) {
			t.Helper()
			path := made(t, dir)
			if err := os.Truncate(path, 3*int64(os.Getpagesize())); err != nil {
				t.Fatal(err)
			}
		}, errdefs.ErrCorrupt},
		{"pages of zeros in the middle", func(t *testing.T, dir string) {
			t.Helper()
			path := made(t, dir)
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			start := 2 * int64(os.Getpagesize())
			if _, err := f.WriteAt(make([]byte, info.Size()-start), start); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}, errdefs.ErrCorrupt},
		{"a schema from the future", func(t *testing.T, dir string) {
			t.Helper()
			s := open(t, dir)
			err := s.db.Update(func(tx *bbolt.Tx) error {
				return putNumber(tx.Bucket([]byte(bucketMeta)), keySchema, schemaVersion+1)
			})
			if err := errors.Join(err, s.Close()); err != nil {
				t.Fatal(err)
			}
		}, errdefs.ErrUnsupported},
		{"a folder in its place", func(t *testing.T, dir string) {
			t.Helper()
			if err := os.Mkdir(filepath.Join(dir, FileName), 0o700); err != nil {
				t.Fatal(err)
			}
		}, errdefs.ErrInvalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			tt.prepare(t, dir)
			s, err := Open(dir)
			if err == nil {
				_ = s.Close()
			}
			if !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), dir) {
				t.Errorf("%v, want kind %v and the path", err, tt.kind)
			}
		})
	}
}

// writerVariable makes the test binary a writer that is killed from outside.
const writerVariable = "HEDDLE_TEST_STORE_WRITER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerVariable); dir != "" {
		os.Exit(writeUntilKilled(dir))
	}
	os.Exit(m.Run())
}

// writeUntilKilled tells each number on standard output after it was kept.
func writeUntilKilled(dir string) int {
	s, err := Open(dir)
	if err == nil {
		err = s.Begin()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for {
		id, err := s.ReserveIDs(1)
		if err == nil {
			err = s.SetClient(id, Override{Weight: new(uint32(id))}) // small
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		_, _ = fmt.Fprintln(os.Stdout, id)
	}
}

func TestNothingKeptIsLostWhenTheWriterIsKilled(t *testing.T) {
	dir := t.TempDir()
	last := uint64(0)
	for round := range 15 {
		cmd := exec.Command(os.Args[0]) // this test itself
		cmd.Env = append(os.Environ(), writerVariable+"="+dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// A different number of lines each time: the kill comes at other places.
		lines := bufio.NewScanner(out)
		for n := 0; n <= round && lines.Scan(); n++ {
			if last, err = strconv.ParseUint(lines.Text(), 10, 64); err != nil {
				t.Fatal(err)
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() { // what it told between our last read and its death
			if n, err := strconv.ParseUint(lines.Text(), 10, 64); err == nil {
				last = n
			}
		}
		_ = cmd.Wait()
	}
	s := open(t, dir)
	if s.Generation() != 15 {
		t.Errorf("generation %d after 15 writers", s.Generation())
	}
	clients, err := s.Clients()
	if err != nil {
		t.Fatal(err)
	}
	for id := uint64(1); id <= last; id++ {
		if o, ok := clients[id]; ok && (o.Weight == nil || uint64(*o.Weight) != id) {
			t.Errorf("client %d: %+v", id, o)
		}
	}
	if _, ok := clients[last]; !ok {
		t.Errorf("client %d was told to be kept and is gone", last)
	}
}

func TestPoliciesSurviveAReopen(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	for _, step := range []struct {
		policy  string
		devices []string
		want    map[string]string
	}{
		{"fair", []string{"GPU-a", "GPU-b"}, map[string]string{"GPU-a": "fair", "GPU-b": "fair"}},
		{"none", []string{"GPU-b"}, map[string]string{"GPU-a": "fair", "GPU-b": "none"}},
		{"", []string{"GPU-a", "GPU-c"}, map[string]string{"GPU-b": "none"}},
	} {
		if err := s.SetPolicies(step.policy, step.devices...); err != nil {
			t.Fatal(err)
		}
		s = reopen(t, s, dir)
		got, err := s.Policies()
		if diff := cmp.Diff(step.want, got); diff != "" || err != nil {
			t.Error(err, diff)
		}
	}
	if err := s.SetPolicies("fair", "GPU-d", ""); err == nil {
		t.Error("a device without a UUID was kept")
	}
	if got, _ := s.Policies(); len(got) != 1 {
		t.Errorf("part of what failed is kept: %v", got)
	}
}
