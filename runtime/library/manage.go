package library

import (
	"cmp"
	"slices"
	"time"

	"github.com/heddle-project/heddle/runtime/errdefs"
	"github.com/heddle-project/heddle/runtime/profiles"
	"github.com/heddle-project/heddle/runtime/store"
)

// Entry is one profile in a list.
type Entry struct {
	profiles.Summary
	Clients int       // that use it at present
	Kept    time.Time // when it was last written to disk, zero = never
}

// List sums up all profiles, in use or kept, by label, device and workload. Those that cannot be
// decoded are left out and logged.
func (l *Library) List() ([]Entry, error) {
	entries := map[profiles.ID]Entry{}
	err := l.opt.Store.EachProfile(func(kept *store.Profile) error {
		p, err := profiles.Decode(kept.Data)
		if err != nil {
			l.opt.Log.Warn("read profile", "workload", kept.Key.Workload, "device", kept.Key.Device, "error", err)
			return nil
		}
		entries[profiles.ID(kept.Key)] = Entry{Summary: p.Summary(), Kept: kept.Kept}
		return nil
	})
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	for id, b := range l.open {
		e := entries[id]
		e.Summary, e.Clients = b.profile.Summary(), b.users
		entries[id] = e
	}
	l.mu.Unlock()
	list := make([]Entry, 0, len(entries))
	for _, e := range entries {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Label, b.Label), cmp.Compare(a.ID.Device, b.ID.Device), cmp.Compare(a.ID.Workload, b.ID.Workload))
	})
	return list, nil
}

// View calls f with a profile, which f must neither keep nor change. The error is
// [errdefs.ErrNotFound] if there is none.
func (l *Library) View(id profiles.ID, f func(*profiles.Profile) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, err := l.find(id)
	if err != nil {
		return err
	}
	return f(p)
}

// find must be called with the lock held.
func (l *Library) find(id profiles.ID) (*profiles.Profile, error) {
	if b := l.open[id]; b != nil {
		return b.profile, nil
	}
	p, err := l.load(id)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return nil, errdefs.Errorf(errdefs.NotFound, "no profile of %s on %s", id.Workload, id.Device)
	}
	return p, nil
}

// Merge adds what another profile of the same workload knows, which may be one that is not known
// here, and writes the result to disk.
func (l *Library) Merge(other *profiles.Profile) error {
	return l.change(other.ID, true, func(p *profiles.Profile) error { return p.Merge(other) })
}

// Replace forgets what is known of a workload, and knows what another profile of it knows.
func (l *Library) Replace(other *profiles.Profile) error {
	return l.change(other.ID, true, func(p *profiles.Profile) error {
		fresh := profiles.New(other.ID)
		if err := fresh.Merge(other); err != nil {
			return err
		}
		*p = *fresh
		return nil
	})
}

// Change calls f to change a profile and writes it to disk, unless f fails: then f must have changed
// nothing.
func (l *Library) Change(id profiles.ID, f func(*profiles.Profile) error) error {
	return l.change(id, false, f)
}

func (l *Library) change(id profiles.ID, create bool, f func(*profiles.Profile) error) error {
	l.disk.Lock()
	defer l.disk.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	p, err := l.find(id)
	if create && errdefs.KindOf(err) == errdefs.NotFound {
		p, err = profiles.New(id), nil
	}
	if err != nil {
		return err
	}
	if err := f(p); err != nil {
		return err
	}
	if b := l.open[id]; b != nil {
		b.version++
	}
	_, err = l.opt.Store.KeepProfiles(store.Profile{Key: store.ProfileKey(id), Kept: l.opt.Now(), Data: p.Encode()})
	return err
}

// Forget removes a profile. Clients of the workload that are attached begin to learn anew.
func (l *Library) Forget(id profiles.ID) error {
	l.disk.Lock()
	defer l.disk.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.open[id]
	err := l.opt.Store.ForgetProfile(store.ProfileKey(id))
	if errdefs.KindOf(err) == errdefs.NotFound && b != nil {
		err = nil // it was never written
	}
	if err != nil {
		return err
	}
	if b == nil {
		return nil
	}
	label := b.profile.Label
	b.profile = profiles.New(id)
	b.profile.Label = label
	b.version++
	b.dirty = false
	l.closeUnused(b)
	return nil
}
