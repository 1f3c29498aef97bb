package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"github.com/heddle-project/heddle/runtime/errdefs"
)

const (
	// ProfilesMax is how many profiles are kept. A new one displaces the one that was not kept anew
	// for longest.
	ProfilesMax = 256
	// ProfileBytesMax is how long one may be: several times what a thousand kernels need.
	ProfileBytesMax = 2 << 20
	// profileKeyMax is how long the parts of a key may be, together.
	profileKeyMax = 1024

	bucketProfiles = "profiles"
	timeBytes      = 8
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
	Key  ProfileKey
	Kept time.Time // when, to the second
	Data []byte
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
	if !ok || len(value) < timeBytes {
		return Profile{}, errdefs.Errorf(errdefs.Corrupt, "profile %q of %d bytes", key, len(value))
	}
	return Profile{
		Key: ProfileKey{string(workload), string(device)}, Kept: keptAt(value), Data: value[timeBytes:],
	}, nil
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
			value := binary.BigEndian.AppendUint64(make([]byte, 0, timeBytes+len(p.Data)), uint64(max(0, p.Kept.Unix())))
			if err := b.Put(key, append(value, p.Data...)); err != nil {
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

// displace removes the oldest profiles until no more than ProfilesMax are left.
func displace(b *bbolt.Bucket) (displaced []ProfileKey, err error) {
	type aged struct {
		key  []byte
		kept time.Time
	}
	var all []aged
	err = b.ForEach(func(key, value []byte) error {
		all = append(all, aged{bytes.Clone(key), keptAt(value)})
		return nil
	})
	if err != nil {
		return nil, err
	}
	for len(all) > ProfilesMax {
		oldest := 0
		for i := range all {
			if all[i].kept.Before(all[oldest].kept) {
				oldest = i
			}
		}
		if err := b.Delete(all[oldest].key); err != nil {
			return nil, err
		}
		workload, device, _ := bytes.Cut(all[oldest].key, []byte{0})
		displaced = append(displaced, ProfileKey{string(workload), string(device)})
		all = append(all[:oldest], all[oldest+1:]...)
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
