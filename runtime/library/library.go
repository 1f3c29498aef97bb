// Package library holds the profiles of a node: one for each workload on each model of device, used
// together by all clients of that workload. A profile is read from the store when somebody wants it,
// learns while it is in use, and is written back now and then.
//
// Everything that clients tell is bounded here: how many profiles one tenant has in use, and how many
// are in use at all. A workload beyond the bounds runs as one of which nothing is known.
package library

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/profiles"
	"github.com/heddle-project/heddle/runtime/store"
)

// Bounds of what is in use at a time. A profile takes up to about a mebibyte.
const (
	openMax       = store.ProfilesMax
	openPerTenant = 64
)

// Options are what a Library is made of.
type Options struct {
	Store *store.Store
	Log   *slog.Logger
	Now   func() time.Time
}

// Library is all that is known of workloads. Its methods may be called from several goroutines.
type Library struct {
	opt Options

	disk sync.Mutex // held while profiles are written or forgotten; before mu

	mu      sync.Mutex
	open    map[profiles.ID]*book
	readers map[Reader]*reader
	tenants map[string]int // books in use

	// What planners ask for, under a lock of its own: they must not wait for a profile that is read.
	knownMu sync.Mutex
	known   map[Reader]Known
}

// book is a profile in use.
type book struct {
	profile *profiles.Profile
	tenant  string // of the first who opened it; a workload's key has only one
	users   int
	dirty   bool   // knows more than the store
	version uint64 // counts what was learnt
}

// New returns a library that has nothing in use.
func New(opt Options) *Library {
	return &Library{
		opt: opt, open: map[profiles.ID]*book{}, readers: map[Reader]*reader{}, tenants: map[string]int{},
		known: map[Reader]Known{},
	}
}

// take returns the book of a workload, with one user more; nil if too many are in use.
func (l *Library) take(id profiles.ID, tenant, label string) *book {
	b := l.open[id]
	if b == nil {
		if len(l.open) >= openMax || l.tenants[tenant] >= openPerTenant {
			return nil
		}
		p, err := l.load(id)
		if err != nil {
			// A profile that cannot be read is learnt anew.
			l.opt.Log.Warn("read profile", "workload", id.Workload, "device", id.Device, "error", err)
		}
		if p == nil {
			p = profiles.New(id)
		}
		b = &book{profile: p, tenant: tenant}
		l.open[id] = b
		l.tenants[tenant]++
	}
	if label != "" {
		b.profile.Label = label
	}
	b.users++
	return b
}

// load reads a profile from the store, nil if there is none.
func (l *Library) load(id profiles.ID) (*profiles.Profile, error) {
	kept, err := l.opt.Store.Profile(store.ProfileKey(id))
	if errors.Is(err, errdefs.ErrNotFound) {
		return nil, nil //nolint:nilnil // nothing is known: that is no error and no profile
	}
	if err != nil {
		return nil, err
	}
	p, err := profiles.Decode(kept.Data)
	if err != nil {
		return nil, err
	}
	if p.ID != id {
		return nil, errdefs.Errorf(errdefs.Corrupt, "profile of %s on %s is kept as that of %s on %s",
			p.ID.Workload, p.ID.Device, id.Workload, id.Device)
	}
	return p, nil
}

// give ends one use of a book. One that nobody uses is closed when it is on disk.
func (l *Library) give(b *book) {
	b.users--
	if !b.dirty {
		l.closeUnused(b)
	}
}

func (l *Library) closeUnused(b *book) {
	if b.users > 0 || l.open[b.profile.ID] != b {
		return
	}
	delete(l.open, b.profile.ID)
	if l.tenants[b.tenant]--; l.tenants[b.tenant] <= 0 {
		delete(l.tenants, b.tenant)
	}
}

// Save writes to the store what was learnt since the last time. Profiles stay as they are when it
// fails, and are written the next time.
func (l *Library) Save() error {
	l.disk.Lock()
	defer l.disk.Unlock()
	l.mu.Lock()
	var (
		books []*book
		keep  []store.Profile
	)
	for id, b := range l.open {
		if b.dirty {
			b.dirty = false
			books = append(books, b)
			keep = append(keep, store.Profile{Key: store.ProfileKey(id), Owner: b.tenant, Kept: l.opt.Now(), Data: b.profile.Encode()})
		}
	}
	l.mu.Unlock()
	// The disk may be slow, and clients are read meanwhile.
	_, err := l.opt.Store.KeepProfiles(keep...)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range books {
		if err != nil {
			b.dirty = true
		}
		if !b.dirty {
			l.closeUnused(b)
		}
	}
	if err != nil {
		return fmt.Errorf("save profiles: %w", err)
	}
	return nil
}
