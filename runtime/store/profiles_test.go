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
	keep(t, s, Profile{Key: ProfileKey{"w", "H100"}, Kept: day(1), Data: []byte("old")})
	want := []Profile{
		{Key: ProfileKey{"w", "A100"}, Kept: day(2), Data: []byte("of another device")},
		{Key: ProfileKey{"w", "H100"}, Owner: strings.Repeat("o", ownerMax), Kept: day(3), Data: []byte("new")},
		{Key: ProfileKey{"x", ""}, Kept: day(4), Data: []byte{}},
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
		many = append(many, Profile{Key: ProfileKey{fmt.Sprint(i), "d"}, Kept: day(10 + i), Data: []byte{1}})
	}
	if displaced := keep(t, s, many...); displaced != nil {
		t.Errorf("displaced %v of what fits", displaced)
	}
	many[0].Kept = day(1000) // kept anew
	keep(t, s, many[0])
	displaced := keep(t, s, Profile{Key: ProfileKey{"a", "d"}, Kept: day(1001)}, Profile{Key: ProfileKey{"b", "d"}, Kept: day(1)})
	if diff := cmp.Diff([]ProfileKey{{"b", "d"}, {"1", "d"}}, displaced); diff != "" {
		t.Error(diff)
	}
	if got, err := all(s); len(got) != ProfilesMax || err != nil {
		t.Errorf("%d are kept, %v", len(got), err)
	}
}

func TestWhoKeepsMostLosesFirst(t *testing.T) {
	s := open(t, t.TempDir())
	keep(t, s, Profile{Key: ProfileKey{"old", "d"}, Owner: "quiet", Kept: day(1)}, Profile{Key: ProfileKey{"older", "d"}, Kept: day(1)})
	var many []Profile
	for i := range 2 * ProfilesMax {
		many = append(many, Profile{Key: ProfileKey{fmt.Sprint(i), "d"}, Owner: "inventive", Kept: day(10 + i)})
	}
	for _, p := range keep(t, s, many...) {
		if p.Workload == "old" || p.Workload == "older" {
			t.Errorf("%q was displaced by another's", p.Workload)
		}
	}
	if got, err := all(s); len(got) != ProfilesMax || err != nil {
		t.Errorf("%d are kept, %v", len(got), err)
	}
	if _, err := s.Profile(ProfileKey{fmt.Sprint(2*ProfilesMax - 1), "d"}); err != nil {
		t.Errorf("the newest: %v", err)
	}
}

// As version 0.1 wrote them: the time and the data.
func TestProfilesWithoutAnOwnerAreRead(t *testing.T) {
	s := open(t, t.TempDir())
	put := func(key string, value []byte) {
		t.Helper()
		if err := s.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte(bucketProfiles)).Put([]byte(key), value) }); err != nil {
			t.Fatal(err)
		}
	}
	put("w\x00d", append([]byte{0, 0, 0, 0, 0x69, 0x55, 0xb9, 0}, "data"...))
	p, err := s.Profile(ProfileKey{"w", "d"})
	if err != nil || p.Owner != "" || string(p.Data) != "data" || !p.Kept.Equal(time.Unix(0x6955b900, 0)) {
		t.Errorf("%+v, %v", p, err)
	}
	put("x\x00d", []byte{1 << 7, 0, 0, 0, 0, 0, 0, 1, 9, 'o'})
	if p, err := s.Profile(ProfileKey{"x", "d"}); !errors.Is(err, errdefs.ErrCorrupt) {
		t.Errorf("an owner that is cut short: %+v, %v", p, err)
	}
}

func TestProfilesAreKeptAllOrNone(t *testing.T) {
	s := open(t, t.TempDir())
	good := Profile{Key: ProfileKey{"w", "d"}, Kept: day(1), Data: []byte("x")}
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
	keep(t, s, Profile{Key: ProfileKey{"w", "d"}, Kept: day(1), Data: []byte("x")})
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
