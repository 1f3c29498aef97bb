package gpu

import (
	"errors"
	"testing"
)

func TestParseUUID(t *testing.T) {
	const bare = "01020304-0506-0708-090a-0b0c0d0e0fff"
	want := UUID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 255}
	for _, text := range []string{bare, "GPU-" + bare, "MIG-" + bare} {
		got, err := ParseUUID(text)
		if err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	if want.String() != bare || want.GPUString() != "GPU-"+bare || want.MIGString() != "MIG-"+bare {
		t.Errorf("printed as %s", want)
	}
	for _, text := range []string{"", "GPU-", "0", bare + "0", "01020304-0506-0708-090a-0b0c0d0e0fgg", "0102030400506-0708-090a-0b0c0d0e0fff"} {
		if _, err := ParseUUID(text); !errors.Is(err, ErrUUID) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzParseUUID(f *testing.F) {
	f.Add("GPU-01020304-0506-0708-090a-0b0c0d0e0fff")
	f.Add("MIG-GPU-01020304-0506-0708-090a-0b0c0d0e0fff/1/0")
	f.Fuzz(func(t *testing.T, text string) {
		u, err := ParseUUID(text)
		if err != nil {
			if !u.IsZero() {
				t.Fatalf("%v and %v", u, err)
			}
			return
		}
		if again, err := ParseUUID(u.GPUString()); err != nil || again != u {
			t.Fatalf("%v, %v", again, err)
		}
	})
}

func TestMIGModeIsToldWithItsPendingChange(t *testing.T) {
	for want, mode := range map[string]MIGMode{
		"unsupported":               {},
		"disabled":                  {Supported: true},
		"enabled":                   {Supported: true, Current: true, Pending: true},
		"enabled, pending disabled": {Supported: true, Current: true},
	} {
		if got := mode.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
