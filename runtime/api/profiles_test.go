package api

import (
	"bytes"
	"errors"
	"testing"

	heddlev1 "github.com/heddle-project/heddle/runtime/api/heddle/v1"
	"github.com/heddle-project/heddle/runtime/errdefs"
)

func TestDocumentsOfAnySizeAreImported(t *testing.T) {
	conn := NewConn(serve(t, &backend{}, true))
	defer conn.Close()
	head := &heddlev1.ImportProfileRequest{Workload: "w"}
	for _, size := range []int{0, 1, pieceBytes, pieceBytes + 1, 5*pieceBytes + 7, documentMax} {
		res, err := conn.ImportProfile(t.Context(), head, bytes.Repeat([]byte{'x'}, size))
		if err != nil || int(res.GetFound()) != size || res.GetMissing()[0] != "w" {
			t.Errorf("%d bytes: %v, %v", size, res, err)
		}
	}
	if _, err := conn.ImportProfile(t.Context(), head, make([]byte, documentMax+1)); !errors.Is(err, errdefs.ErrInvalid) {
		t.Errorf("more than the bound: %v", err)
	}
}

func TestProfilesAreForAdministrators(t *testing.T) {
	conn := NewConn(serve(t, &backend{}, false))
	defer conn.Close()
	calls := map[string]func() error{
		"list":   func() error { _, err := conn.Profiles(t.Context()); return err },
		"get":    func() error { _, err := conn.Profile(t.Context(), "w", "d"); return err },
		"export": func() error { _, err := conn.ExportProfile(t.Context(), "w", "d"); return err },
		"forget": func() error { return conn.ForgetProfile(t.Context(), "w", "d") },
		"import": func() error {
			_, err := conn.ImportProfile(t.Context(), &heddlev1.ImportProfileRequest{}, make([]byte, documentMax))
			return err
		},
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, errdefs.ErrPermissionDenied) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
