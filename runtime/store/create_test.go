package store

import (
	"errors"
	"os"
	"sync"
	"testing"

	"github.com/heddle-project/heddle/runtime/errdefs"
)

func TestTheFirstOpensAtOnceMakeOneFileAndLeaveNothingElse(t *testing.T) {
	dir := t.TempDir()
	var opens sync.WaitGroup
	for range 8 {
		opens.Go(func() {
			s, err := Open(dir)
			if errors.Is(err, errdefs.ErrBusy) {
				return // somebody has it just now
			}
			if err == nil {
				err = s.Close()
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	opens.Wait()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != FileName {
		t.Errorf("%v, %v", entries, err)
	}
}
