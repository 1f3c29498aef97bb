package daemon

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heddle-project/heddle/runtime/errdefs"
)

func TestAKernelThatLacksThingsIsSaidInOneLine(t *testing.T) {
	fine := func() error { return nil }
	failing := func(err error) func() error { return func() error { return err } }
	tests := []struct {
		name  string
		tries []func() error
		kind  errdefs.Kind
		words []string
	}{
		{"nothing is missing", []func() error{fine, fine}, errdefs.Unknown, nil},
		{"seals are", []func() error{failing(errdefs.Errorf(errdefs.Unsupported, "seal: (needs Linux 5.1)")), fine},
			errdefs.Unsupported, []string{"Linux 4.19.0 ", "needs Linux 5.1", "use Linux 5.4 or newer"}},
		{"two things are", []func() error{failing(fmt.Errorf("create memfd: %w", unix.EPERM)), failing(fmt.Errorf("open pidfd: %w", unix.ENOSYS))},
			errdefs.Unsupported, []string{"create memfd: operation not permitted; open pidfd: function not implemented", "seccomp"}},
		{"something else is wrong", []func() error{fine, failing(unix.EMFILE)}, errdefs.Unknown, []string{"too many open files"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := lacks("4.19.0", tt.tries...)
			if tt.words == nil {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || errdefs.KindOf(err) != tt.kind || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%v of kind %v", err, errdefs.KindOf(err))
			}
			for _, w := range tt.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
		})
	}
	if err := lacks(osRelease(), trySegment, tryPidfd); err != nil && !errors.Is(err, errdefs.ErrUnsupported) {
		t.Errorf("on this machine: %v", err)
	}
}
