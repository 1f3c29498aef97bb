package errdefs_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/heddle-project/heddle/runtime/errdefs"
)

var all = []errdefs.Kind{
	errdefs.NotFound, errdefs.Exists, errdefs.Invalid, errdefs.Busy, errdefs.Exhausted,
	errdefs.Unsupported, errdefs.Corrupt, errdefs.Unavailable, errdefs.PermissionDenied,
}

// driverError stands for the typed errors of packages that map foreign codes to a kind by Is.
type driverError struct{ code int }

func (e driverError) Error() string { return fmt.Sprintf("driver code %d", e.code) }

func (e driverError) Is(target error) bool {
	return e.code == 6 && target == errdefs.ErrNotFound
}

func TestKindOf(t *testing.T) {
	_, missing := os.Open(filepath.Join(t.TempDir(), "nothing"))
	tests := []struct {
		name string
		err  error
		want errdefs.Kind
	}{
		{"no error has no kind", nil, errdefs.Unknown},
		{"a plain error has no kind", errors.New("boom"), errdefs.Unknown},
		{"a bare sentinel", errdefs.ErrBusy, errdefs.Busy},
		{"a wrapped sentinel", fmt.Errorf("client 7: %w", errdefs.ErrNotFound), errdefs.NotFound},
		{"a formatted error", errdefs.Errorf(errdefs.Corrupt, "segment of %d bytes", 3), errdefs.Corrupt},
		{"the outermost kind wins", errdefs.Errorf(errdefs.Unavailable, "ask: %w", errdefs.ErrNotFound), errdefs.Unavailable},
		{"joined errors give the first kind", errors.Join(errors.New("x"), errdefs.ErrExists), errdefs.Exists},
		{"a typed error that maps its code", fmt.Errorf("query: %w", driverError{6}), errdefs.NotFound},
		{"a typed error with a code that maps to nothing", driverError{7}, errdefs.Unknown},
		{"a missing file", missing, errdefs.NotFound},
		{"a refused system call", fmt.Errorf("bind: %w", syscall.EACCES), errdefs.PermissionDenied},
		{"an existing file", fs.ErrExist, errdefs.Exists},
		{"an invalid file operation", fs.ErrInvalid, errdefs.Invalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := errdefs.KindOf(tt.err); got != tt.want {
				t.Errorf("KindOf(%v) = %v, want %v", tt.err, got, tt.want)
			}
		})
	}
}

func TestErrorfKeepsMessageAndChain(t *testing.T) {
	err := errdefs.Errorf(errdefs.Unavailable, "dial %s: %w", "socket", fs.ErrNotExist)
	if got, want := err.Error(), "dial socket: file does not exist"; got != want {
		t.Errorf("message = %q, want %q", got, want)
	}
	if !errors.Is(err, errdefs.ErrUnavailable) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v lost its kind or its cause", err)
	}
	if errors.Is(err, errdefs.ErrBusy) {
		t.Errorf("%v claims a kind that it was not given", err)
	}
}

func TestEveryKindSurvivesTheWire(t *testing.T) {
	seen := map[uint32]errdefs.Kind{}
	for _, k := range all {
		t.Run(k.String(), func(t *testing.T) {
			code := errdefs.Code(fmt.Errorf("operation: %w", k.Err()))
			if prior, taken := seen[code]; taken {
				t.Fatalf("code %d stands for %v and %v", code, prior, k)
			}
			seen[code] = k
			back := errdefs.FromCode(code, "what the sender said")
			if !errors.Is(back, k.Err()) || errdefs.KindOf(back) != k {
				t.Errorf("code %d came back as %v", code, errdefs.KindOf(back))
			}
			if back.Error() != "what the sender said" {
				t.Errorf("message = %q", back.Error())
			}
		})
	}
}

func TestContextErrorsSurviveTheWire(t *testing.T) {
	for _, cause := range []error{context.Canceled, context.DeadlineExceeded} {
		back := errdefs.FromCode(errdefs.Code(fmt.Errorf("list: %w", cause)), "given up")
		if !errors.Is(back, cause) {
			t.Errorf("%v came back as %v", cause, back)
		}
	}
}

func TestUnknownCodesHaveNoKind(t *testing.T) {
	for _, code := range []uint32{0, 2, 10, 13, 16, 99} {
		if k := errdefs.KindOf(errdefs.FromCode(code, "x")); k != errdefs.Unknown {
			t.Errorf("code %d gave kind %v", code, k)
		}
	}
	if errdefs.Unknown.Err() != nil || errdefs.Kind(200).Err() != nil {
		t.Error("a number that is no kind has a sentinel")
	}
}
