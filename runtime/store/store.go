// Package store keeps what must survive a restart of heddled on this node: the
// generation, the identities it handed out, what an administrator set, and the
// profiles of workloads.
//
// Everything is one bbolt file. A change is on disk when its method returns;
// a kill at any instruction leaves the state before or after it.
package store

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/heddle-project/heddle/runtime/errdefs"
)

// FileName is the name of the file inside the state directory.
const FileName = "heddled.db"

// schemaVersion is what this build writes. An older file is brought up to it,
// a newer one refused.
const schemaVersion = 1

// lockPatience is how long Open waits for another process to let go of the
// file: a daemon that is just stopping, not one that runs.
const lockPatience = 300 * time.Millisecond

// The buckets and the keys of the first one.
const (
	bucketMeta     = "meta"
	bucketTenants  = "tenants"
	bucketClients  = "clients"
	bucketPolicies = "policies"

	keySchema     = "schema"
	keyGeneration = "generation"
	keyNextID     = "next_id"
	keySecret     = "secret"
)

// SecretBytes is the length of the node's secret.
const SecretBytes = 32

// Override is what an administrator set for a tenant or a client; nil = left
// as the configuration says.
type Override struct {
	Priority *uint32 `json:"priority,omitempty"`
	Weight   *uint32 `json:"weight,omitempty"`
	SLO      *string `json:"slo,omitempty"` // as the configuration writes it
}

// IsZero reports whether o changes nothing.
func (o Override) IsZero() bool { return o.Priority == nil && o.Weight == nil && o.SLO == nil }

// Store is an open state file. Its methods may be called from many goroutines.
type Store struct {
	db         *bbolt.DB
	generation uint64
	secret     [SecretBytes]byte
}

// Open takes the state file in dir and makes it if there is none. The error is
// errdefs.ErrBusy if another heddled has it and errdefs.ErrCorrupt if its
// content makes no sense.
func Open(dir string) (*Store, error) {
	path := filepath.Join(dir, FileName)
	if err := create(path); err != nil {
		return nil, fmt.Errorf("make %s: %w", path, err)
	}
	db, err := openFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s := &Store{db: db}
	if err := db.Update(s.start); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), db.Close())
	}
	return s, nil
}

// openFile opens and checks the file. bbolt trusts the pages it maps: on a
// damaged file it panics, or touches memory behind the end of a short one.
// Both are turned into errors here, once, instead of later in the daemon.
func openFile(path string) (db *bbolt.DB, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = errdefs.Errorf(errdefs.Corrupt, "damaged: %v", r)
		}
	}()
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return nil, errdefs.Errorf(errdefs.Invalid, "not a regular file")
	case err == nil && info.Size() > 0:
		if err := checkLength(path, info.Size()); err != nil {
			return nil, err
		}
	}
	db, err = bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout:      lockPatience,
		NoStatistics: true,
		// The file holds some megabytes at most; the array is the simple form.
		FreelistType: bbolt.FreelistArrayType,
	})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, errdefs.Errorf(errdefs.Busy, "in use by another heddled")
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum),
		errors.Is(err, bolterrors.ErrVersionMismatch):
		return nil, errdefs.Errorf(errdefs.Corrupt, "damaged: %w", err)
	case err != nil:
		return nil, err
	}
	err = db.View(func(tx *bbolt.Tx) error {
		var first error
		for e := range tx.Check() {
			if first == nil {
				first = errdefs.Errorf(errdefs.Corrupt, "damaged: %w", e)
			}
		}
		return first
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// checkLength refuses a file that is shorter than the pages its newest meta
// page speaks of, before anything maps it.
func checkLength(path string, size int64) error {
	// A meta page: 16 bytes of page header, then magic, version, page size,
	// flags, root (16 bytes), freelist, pages in use.
	const metaBytes, offsetPageSize, offsetPages = 72, 24, 56
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	var meta [metaBytes]byte
	if _, err := f.ReadAt(meta[:], 0); err != nil {
		return errdefs.Errorf(errdefs.Corrupt, "damaged: shorter than one page")
	}
	pageSize := int64(binary.NativeEndian.Uint32(meta[offsetPageSize:]))
	need := 2 * pageSize
	for page := range int64(2) {
		if _, err := f.ReadAt(meta[:], page*pageSize); err != nil {
			return errdefs.Errorf(errdefs.Corrupt, "damaged: %d bytes, and two pages of %d are the least", size, pageSize)
		}
		if page == 0 || binary.NativeEndian.Uint32(meta[offsetPageSize:]) == uint32(pageSize) { // was a uint32
			need = max(need, int64(binary.NativeEndian.Uint64(meta[offsetPages:]))*pageSize) // a negative product fails below
		}
	}
	if pageSize < 512 || need < 0 || size < need {
		return errdefs.Errorf(errdefs.Corrupt, "damaged: %d bytes, and its own count says %d", size, need)
	}
	return nil
}

// start checks the schema and makes what a new file lacks.
func (s *Store) start(tx *bbolt.Tx) error {
	meta, err := tx.CreateBucketIfNotExists([]byte(bucketMeta))
	if err != nil {
		return err
	}
	for _, name := range []string{bucketTenants, bucketClients, bucketPolicies, bucketProfiles, bucketReservations} {
		if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
			return err
		}
	}
	version, err := number(meta, keySchema)
	switch {
	case err != nil:
		return err
	case version > schemaVersion:
		return errdefs.Errorf(errdefs.Unsupported,
			"written by a newer heddled: schema %d, this one knows %d", version, schemaVersion)
	}
	if s.generation, err = number(meta, keyGeneration); err != nil {
		return err
	}
	secret := meta.Get([]byte(keySecret))
	if secret == nil {
		secret = make([]byte, SecretBytes)
		_, _ = rand.Read(secret) // never fails: see crypto/rand
		if err := meta.Put([]byte(keySecret), secret); err != nil {
			return err
		}
	}
	if copy(s.secret[:], secret) != SecretBytes {
		return errdefs.Errorf(errdefs.Corrupt, "secret of %d bytes", len(secret))
	}
	return putNumber(meta, keySchema, schemaVersion)
}

// Begin starts the next generation: from here on the caller serves clients. Whoever opens the file
// and then cannot serve leaves the number as it was.
func (s *Store) Begin() error {
	err := s.db.Update(func(tx *bbolt.Tx) error {
		return putNumber(tx.Bucket([]byte(bucketMeta)), keyGeneration, s.generation+1)
	})
	if err != nil {
		return fmt.Errorf("keep generation %d: %w", s.generation+1, err)
	}
	s.generation++
	return nil
}

func number(b *bbolt.Bucket, key string) (uint64, error) {
	raw := b.Get([]byte(key))
	if raw == nil {
		return 0, nil
	}
	if len(raw) != 8 {
		return 0, errdefs.Errorf(errdefs.Corrupt, "%s of %d bytes", key, len(raw))
	}
	return binary.BigEndian.Uint64(raw), nil
}

func putNumber(b *bbolt.Bucket, key string, n uint64) error {
	return b.Put([]byte(key), binary.BigEndian.AppendUint64(nil, n))
}

// Generation is one more at each Begin on the same file; the first is 1.
func (s *Store) Generation() uint64 { return s.generation }

// Secret is the same at each Open of the same file, and known to nobody else.
func (s *Store) Secret() [SecretBytes]byte { return s.secret }

// ReserveIDs hands out n numbers that no earlier call ever returned, and
// returns the first; they start at 1. Numbers that were reserved and not used
// before a restart are lost, which harms nobody.
func (s *Store) ReserveIDs(n uint64) (uint64, error) {
	var first uint64
	err := s.db.Update(func(tx *bbolt.Tx) error {
		meta := tx.Bucket([]byte(bucketMeta))
		next, err := number(meta, keyNextID)
		if err != nil {
			return err
		}
		first = max(next, 1)
		return putNumber(meta, keyNextID, first+n)
	})
	if err != nil {
		return 0, fmt.Errorf("reserve client ids: %w", err)
	}
	return first, nil
}

// Tenants returns every tenant with an override.
func (s *Store) Tenants() (map[string]Override, error) {
	all := map[string]Override{}
	err := s.overrides(bucketTenants, func(key []byte, o Override) error {
		all[string(key)] = o
		return nil
	})
	return all, err
}

// Clients returns every client with an override.
func (s *Store) Clients() (map[uint64]Override, error) {
	all := map[uint64]Override{}
	err := s.overrides(bucketClients, func(key []byte, o Override) error {
		if len(key) != 8 {
			return errdefs.Errorf(errdefs.Corrupt, "client key of %d bytes", len(key))
		}
		all[binary.BigEndian.Uint64(key)] = o
		return nil
	})
	return all, err
}

func (s *Store) overrides(bucket string, each func([]byte, Override) error) error {
	return s.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte(bucket)).ForEach(func(key, value []byte) error {
			var o Override
			if err := json.Unmarshal(value, &o); err != nil {
				return errdefs.Errorf(errdefs.Corrupt, "override of %s %x: %w", bucket, key, err)
			}
			return each(key, o)
		})
	})
}

// SetTenant keeps the override of a tenant; a zero one is forgotten.
func (s *Store) SetTenant(name string, o Override) error {
	if name == "" {
		return errdefs.Errorf(errdefs.Invalid, "tenant without a name")
	}
	return s.set(bucketTenants, []byte(name), o)
}

// SetClient keeps the override of a client; a zero one is forgotten.
func (s *Store) SetClient(id uint64, o Override) error {
	return s.set(bucketClients, binary.BigEndian.AppendUint64(nil, id), o)
}

func (s *Store) set(bucket string, key []byte, o Override) error {
	err := s.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(bucket))
		if o.IsZero() {
			return b.Delete(key)
		}
		value, err := json.Marshal(o)
		if err != nil {
			return err
		}
		return b.Put(key, value)
	})
	if err != nil {
		return fmt.Errorf("keep override in %s: %w", bucket, err)
	}
	return nil
}

// Policies returns the policies that were set for devices, by UUID.
func (s *Store) Policies() (map[string]string, error) {
	all := map[string]string{}
	err := s.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte(bucketPolicies)).ForEach(func(key, value []byte) error {
			all[string(key)] = string(value)
			return nil
		})
	})
	return all, err
}

// SetPolicies keeps the policy of each of the devices, all or none; an empty one is forgotten.
func (s *Store) SetPolicies(policy string, devices ...string) error {
	err := s.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(bucketPolicies))
		for _, device := range devices {
			if policy == "" {
				if err := b.Delete([]byte(device)); err != nil {
					return err
				}
				continue
			}
			if err := b.Put([]byte(device), []byte(policy)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("keep policy %q of %d devices: %w", policy, len(devices), err)
	}
	return nil
}

// Close lets go of the file.
func (s *Store) Close() error { return s.db.Close() }
