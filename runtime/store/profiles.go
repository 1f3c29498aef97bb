package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/heddle-project/heddle/runtime/errdefs"
)

const (
	// ProfilesMax is how many profiles are kept. Beyond it the owner of most of them loses the one that
	// was not kept anew for longest: who invents names displaces nobody else's.
	ProfilesMax = 256
	// ProfileBytesMax is how long one may be: several times what a thousand kernels need.
	ProfileBytesMax = 2 << 20
	// profileKeyMax is how long the parts of a key may be, together.
	profileKeyMax = 1024

	bucketProfiles = "profiles"

	// A value is the time in seconds, then, if its highest bit is set, the owner with its length before
	// it, and the data.
	timeBytes = 8
	ownerFlag = 1 << 63
	ownerMax  = 255
)

// ProfileKey says whose profile it is.
type ProfileKey struct {
	Workload string
	Device   string // model
}

// encode joins the parts by a byte that neither has.
func (k ProfileKey) encode() ([]byte, error) {
	if k.Workload == "" || len(k.Workload)+len(k.Device) > profileKeyMax {
		return nil, errdefs.Errorf(errdefs.Invalid, "profile key of %d and %d bytes", len(k.Workload), len(k.Device))
	}
	key := append(append([]byte(k.Workload), 0), k.Device...)
	if bytes.Count(key, []byte{0}) != 1 {
		return nil, errdefs.Errorf(errdefs.Invalid, "profile key %q with a zero byte", key)
	}
	return key, nil
}

// Profile is one as it is kept. The store does not look into Data.
type Profile struct {
	Key   ProfileKey
	Owner string    // whose room it takes up, at most 255 bytes; empty = nobody's
	Kept  time.Time // when, to the second
	Data  []byte
}

// Profile returns the profile under a key. The error is [errdefs.ErrNotFound] if there is none.
func (s *Store) Profile(k ProfileKey) (p Profile, err error) {
	key, err := k.encode()
	if err != nil {
		return Profile{}, err
	}
	err = s.db.View(func(tx *bbolt.Tx) error {
		value := tx.Bucket([]byte(bucketProfiles)).Get(key)
		if value == nil {
			return errdefs.ErrNotFound
		}
		p, err = readProfile(key, value)
		p.Data = bytes.Clone(p.Data) // what bbolt returns ends with the transaction
		return err
	})
	if err != nil {
		return Profile{}, fmt.Errorf("read profile of %s on %s: %w", k.Workload, k.Device, err)
	}
	return p, nil
}

// EachProfile calls f for all profiles, in the order of their keys, until it fails. f must keep no
// Data and change nothing in the store.
func (s *Store) EachProfile(f func(*Profile) error) error {
	return s.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte(bucketProfiles)).ForEach(func(key, value []byte) error {
			p, err := readProfile(key, value)
			if err != nil {
				return err
			}
			return f(&p)
		})
	})
}

// readProfile takes apart what is in the file, without a copy of Data.
func readProfile(key, value []byte) (Profile, error) {
	workload, device, ok := bytes.Cut(key, []byte{0})
	owner, data, whole := ownerOf(value)
	if !ok || !whole {
		return Profile{}, errdefs.Errorf(errdefs.Corrupt, "profile %q of %d bytes", key, len(value))
	}
	return Profile{
		Key: ProfileKey{string(workload), string(device)}, Owner: string(owner), Kept: keptAt(value), Data: data,
	}, nil
}

// ownerOf cuts a value behind its owner. One that is cut short has none.
func ownerOf(value []byte) (owner, data []byte, whole bool) {
	if len(value) < timeBytes {
		return nil, nil, false
	}
	data = value[timeBytes:]
	if binary.BigEndian.Uint64(value)&ownerFlag == 0 {
		return nil, data, true
	}
	if len(data) == 0 || len(data) < 1+int(data[0]) {
		return nil, nil, false
	}
	return data[1 : 1+int(data[0])], data[1+int(data[0]):], true
}

// value is a profile as it is written.
func (p *Profile) value() []byte {
	owner := p.Owner[:min(len(p.Owner), ownerMax)]
	value := binary.BigEndian.AppendUint64(make([]byte, 0, timeBytes+1+len(owner)+len(p.Data)), uint64(max(0, p.Kept.Unix()))|ownerFlag)
	value = append(append(value, byte(len(owner))), owner...)
	return append(value, p.Data...)
}

// KeepProfiles keeps profiles, all or none of them, and returns the keys of those that they
// displaced.
func (s *Store) KeepProfiles(profiles ...Profile) (displaced []ProfileKey, err error) {
	if len(profiles) == 0 {
		return nil, nil
	}
	err = s.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(bucketProfiles))
		for _, p := range profiles {
			key, err := p.Key.encode()
			if err != nil {
				return err
			}
			if len(p.Data) > ProfileBytesMax {
				return errdefs.Errorf(errdefs.Invalid, "profile %q of %d bytes, at most %d are kept", key, len(p.Data), ProfileBytesMax)
			}
			if err := b.Put(key, p.value()); err != nil {
				return err
			}
		}
		displaced, err = displace(b)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("keep %d profiles: %w", len(profiles), err)
	}
	return displaced, nil
}

// displace removes profiles until no more than ProfilesMax are left: of the owner who has most, and of
// its own the oldest.
func displace(b *bbolt.Bucket) (displaced []ProfileKey, err error) {
	type aged struct {
		key   []byte
		owner string
		kept  time.Time
	}
	var all []aged
	count := map[string]int{}
	err = b.ForEach(func(key, value []byte) error {
		owner, _, _ := ownerOf(value)
		all = append(all, aged{bytes.Clone(key), string(owner), keptAt(value)})
		count[string(owner)]++
		return nil
	})
	if err != nil {
		return nil, err
	}
	for len(all) > ProfilesMax {
		first := 0
		for i := range all {
			more := cmp.Or(cmp.Compare(count[all[i].owner], count[all[first].owner]), all[first].kept.Compare(all[i].kept))
			if more > 0 {
				first = i
			}
		}
		if err := b.Delete(all[first].key); err != nil {
			return nil, err
		}
		count[all[first].owner]--
		workload, device, _ := bytes.Cut(all[first].key, []byte{0})
		displaced = append(displaced, ProfileKey{string(workload), string(device)})
		all = slices.Delete(all, first, first+1)
	}
	return displaced, nil
}

// ForgetProfile removes a profile. The error is [errdefs.ErrNotFound] if there is none.
func (s *Store) ForgetProfile(k ProfileKey) error {
	err := s.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(bucketProfiles))
		key, err := k.encode()
		if err != nil {
			return err
		}
		if b.Get(key) == nil {
			return errdefs.ErrNotFound
		}
		return b.Delete(key)
	})
	if err != nil {
		return fmt.Errorf("forget profile of %s on %s: %w", k.Workload, k.Device, err)
	}
	return nil
}

// keptAt reads the time before a profile; one that is cut short counts as the oldest.
func keptAt(value []byte) time.Time {
	if len(value) < timeBytes {
		return time.Unix(0, 0).UTC()
	}
	return time.Unix(int64(binary.BigEndian.Uint64(value)&(1<<62-1)), 0).UTC()
}
