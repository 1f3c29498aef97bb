package store

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"github.com/heddle-project/heddle/runtime/errdefs"
)

func day(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }

func keep(t *testing.T, s *Store, profiles ...Profile) []ProfileKey {
	t.Helper()
	displaced, err := s.KeepProfiles(profiles...)
	if err != nil {
		t.Fatal(err)
	}
	return displaced
}

func all(s *Store) (list []Profile, err error) {
	err = s.EachProfile(func(p *Profile) error {
		one := *p
		one.Data = bytes.Clone(p.Data)
		list = append(list, one)
		return nil
	})
	return list, err
}

func TestProfilesSurviveAReopen(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	keep(t, s)
	keep(t, s, Profile{ProfileKey{"w", "H100"}, day(1), []byte("old")})
	want := []Profile{
		{ProfileKey{"w", "A100"}, day(2), []byte("of another device")},
		{ProfileKey{"w", "H100"}, day(3), []byte("new")},
		{ProfileKey{"x", ""}, day(4), []byte{}},
	}
	keep(t, s, want...)
	s = reopen(t, s, dir)
	got, err := all(s)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	for _, p := range want {
		one, err := s.Profile(p.Key)
		if diff := cmp.Diff(p, one); diff != "" || err != nil {
			t.Error(err, diff)
		}
	}
	if err := s.ForgetProfile(want[0].Key); err != nil {
		t.Error(err)
	}
	if one, err := s.Profile(want[0].Key); !errors.Is(err, errdefs.ErrNotFound) {
		t.Errorf("a forgotten profile: %v, %v", one, err)
	}
	if err := s.ForgetProfile(want[0].Key); !errors.Is(err, errdefs.ErrNotFound) {
		t.Errorf("forgotten twice: %v", err)
	}
	if got, _ := all(s); len(got) != 2 {
		t.Errorf("%d are left", len(got))
	}
}

func TestTheOldestProfilesAreDisplaced(t *testing.T) {
	s := open(t, t.TempDir())
	var many []Profile
	for i := range ProfilesMax {
		many = append(many, Profile{ProfileKey{fmt.Sprint(i), "d"}, day(10 + i), []byte{1}})
	}
	if displaced := keep(t, s, many...); displaced != nil {
		t.Errorf("displaced %v of what fits", displaced)
	}
	many[0].Kept = day(1000) // kept anew
	keep(t, s, many[0])
	displaced := keep(t, s, Profile{ProfileKey{"a", "d"}, day(1001), nil}, Profile{ProfileKey{"b", "d"}, day(1), nil})
	if diff := cmp.Diff([]ProfileKey{{"b", "d"}, {"1", "d"}}, displaced); diff != "" {
		t.Error(diff)
	}
	if got, err := all(s); len(got) != ProfilesMax || err != nil {
		t.Errorf("%d are kept, %v", len(got), err)
	}
}

func TestProfilesAreKeptAllOrNone(t *testing.T) {
	s := open(t, t.TempDir())
	good := Profile{ProfileKey{"w", "d"}, day(1), []byte("x")}
	for name, bad := range map[string]Profile{
		"no workload":         {Key: ProfileKey{"", "d"}},
		"a zero byte":         {Key: ProfileKey{"w\x00d", ""}},
		"a long key":          {Key: ProfileKey{strings.Repeat("w", profileKeyMax), "d"}},
		"more than a profile": {Key: ProfileKey{"v", "d"}, Data: make([]byte, ProfileBytesMax+1)},
	} {
		if _, err := s.KeepProfiles(good, bad); !errors.Is(err, errdefs.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := all(s); len(got) != 0 || err != nil {
			t.Errorf("%s: %d are kept nevertheless, %v", name, len(got), err)
		}
	}
	if err := s.ForgetProfile(ProfileKey{}); !errors.Is(err, errdefs.ErrInvalid) {
		t.Errorf("forgetting nobody's: %v", err)
	}
}

func TestAFileFromBeforeProfilesGetsThem(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if err := s.db.Update(func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte(bucketProfiles)) }); err != nil {
		t.Fatal(err)
	}
	s = reopen(t, s, dir)
	keep(t, s, Profile{ProfileKey{"w", "d"}, day(1), []byte("x")})
}

func TestADamagedProfileIsSaid(t *testing.T) {
	for _, raw := range [][2][]byte{{[]byte("w\x00d"), []byte("short")}, {[]byte("no device"), bytes.Repeat([]byte{0}, 9)}} {
		s := open(t, t.TempDir())
		err := s.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte(bucketProfiles)).Put(raw[0], raw[1]) })
		if err != nil {
			t.Fatal(err)
		}
		if got, err := all(s); !errors.Is(err, errdefs.ErrCorrupt) {
			t.Errorf("%q: %v, %v", raw, got, err)
		}
	}
}
