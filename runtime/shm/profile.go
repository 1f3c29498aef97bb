package shm

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/heddle-project/heddle/runtime/abi"
	"github.com/heddle-project/heddle/runtime/errdefs"
)

// ProfileEntry is what a client is told of one of its kernels, or of a pair of kernels that follow
// each other.
type ProfileEntry struct {
	Key      uint64        // of the kernel or the pair; not 0
	Estimate time.Duration // predicted device time, 0 = unknown
	Gap      time.Duration // predicted idle time that follows, 0 = not predictable
	CoRun    bool          // may run beside peers whose corun bit is set
	Steady   bool          // takes Estimate nearly each time
	SMNeed   uint32        // SMs that the kernel fills, 0 = unknown
}

// profileTable is the writer's own copy of the table: what lies in shared memory is never read back.
type profileTable struct {
	entries []ProfileEntry // Key 0 = free; nil until there is something to tell
	count   int
}

// home is the first place in which the entry of a key can be.
func home(key uint64) int { return int(key >> abi.ProfileShift) } // 11 bits

// find returns the place of a key or, if it has none, the free one that it would get; -1 if neither
// is within reach.
func (t *profileTable) find(key uint64) int {
	for i := range abi.ProfileProbes {
		place := (home(key) + i) % abi.ProfileEntries
		if k := t.entries[place].Key; k == key || k == 0 {
			return place
		}
	}
	return -1
}

// PublishProfile adds entries to the client's profile table, and replaces those whose keys are there
// already. It returns how many found no place: those kernels go by their class's estimate, as if
// nothing were known of them.
func (v *Verdict) PublishProfile(entries []ProfileEntry) (dropped int, err error) {
	for i := range entries {
		if e := &entries[i]; e.Key == 0 || e.Estimate < 0 || e.Gap < 0 {
			return 0, fmt.Errorf("publish profile %+v: %w", *e, errdefs.ErrInvalid)
		}
	}
	if v.profile.entries == nil {
		v.profile.entries = make([]ProfileEntry, abi.ProfileEntries)
	}
	for i := range entries {
		place := v.profile.find(entries[i].Key)
		if place < 0 {
			dropped++
			continue
		}
		old := v.profile.entries[place]
		if old == entries[i] {
			continue
		}
		if old.Key == 0 {
			v.profile.count++
		}
		v.storeEntry(place, entries[i])
	}
	return dropped, nil
}

// ReplaceProfile makes entries all that the table holds, and returns how many of them found no place.
// Entries that do not change are not touched; a client that looks meanwhile finds the old or the new.
func (v *Verdict) ReplaceProfile(entries []ProfileEntry) (dropped int, err error) {
	if v.profile.count != 0 {
		stays := make(map[uint64]struct{}, len(entries))
		for i := range entries {
			stays[entries[i].Key] = struct{}{}
		}
		var gone []uint64
		for i := range v.profile.entries {
			key := v.profile.entries[i].Key
			if _, ok := stays[key]; key != 0 && !ok {
				gone = append(gone, key)
			}
		}
		for _, key := range gone {
			v.RemoveProfile(key)
		}
	}
	return v.PublishProfile(entries)
}

// storeEntry writes a place: values first, the key last with release. A place that stood for
// another key loses that one first, so that a reader never takes values for the wrong kernel's.
func (v *Verdict) storeEntry(place int, e ProfileEntry) {
	shared := &v.seg.Profile[place]
	if old := v.profile.entries[place].Key; old != e.Key && old != 0 {
		atomic.StoreUint64(&shared.Key, 0)
	}
	flags := uint32(0)
	if e.CoRun {
		flags |= abi.ProfileCorun
	}
	if e.Steady {
		flags |= abi.ProfileSteady
	}
	atomic.StoreUint64(&shared.EstimateNs, uint64(e.Estimate))
	atomic.StoreUint64(&shared.GapNs, uint64(e.Gap))
	atomic.StoreUint32(&shared.Flags, flags)
	atomic.StoreUint32(&shared.SMNeed, e.SMNeed)
	atomic.StoreUint64(&shared.Key, e.Key)
	v.profile.entries[place] = e
}

// RemoveProfile takes the entry of a key out of the table, and reports whether there was one. The
// entries behind it move up: a reader ends its search at the first free place.
func (v *Verdict) RemoveProfile(key uint64) bool {
	if key == 0 || v.profile.count == 0 {
		return false
	}
	hole := v.profile.find(key)
	if hole < 0 || v.profile.entries[hole].Key != key {
		return false
	}
	v.profile.count--
	// No search that passes the hole reaches further.
	for i := 1; i < abi.ProfileProbes; i++ {
		place := (hole + i) % abi.ProfileEntries
		e := v.profile.entries[place]
		if e.Key == 0 {
			break
		}
		if distance(home(e.Key), place) < i {
			continue // its search begins behind the hole
		}
		v.storeEntry(hole, e)
		hole, i = place, 0
	}
	v.storeEntry(hole, ProfileEntry{})
	return true
}

// distance is how many places lie between from and to, in the direction of a search.
func distance(from, to int) int { return (to - from + abi.ProfileEntries) % abi.ProfileEntries }

// ClearProfile empties the table.
func (v *Verdict) ClearProfile() {
	for place := range v.profile.entries {
		if v.profile.entries[place].Key != 0 {
			v.storeEntry(place, ProfileEntry{})
		}
	}
	v.profile.count = 0
}

// ProfileCount returns the number of entries in the table.
func (v *Verdict) ProfileCount() int { return v.profile.count }
