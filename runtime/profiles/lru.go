package profiles

import "iter"

// evictLooks is how many of the least recently used ones are compared when one must go.
const evictLooks = 8

// lru holds a bounded number of values by key. When it is full it drops one of those that were not
// used for longest, the one of least worth: a flood of things seen once displaces such things only.
type lru[V any] struct {
	most   int
	worth  func(*V) uint32
	byKey  map[uint64]*node[V]
	newest *node[V]
	oldest *node[V]
}

type node[V any] struct {
	key          uint64
	newer, older *node[V]
	value        V
}

func newLRU[V any](most int, worth func(*V) uint32) lru[V] {
	return lru[V]{most: most, worth: worth, byKey: map[uint64]*node[V]{}}
}

// peek returns the value of a key, nil if there is none.
func (l *lru[V]) peek(key uint64) *V {
	if n := l.byKey[key]; n != nil {
		return &n.value
	}
	return nil
}

// use returns the value of a key, a zero one if there was none, as the most recently used.
func (l *lru[V]) use(key uint64) (value *V, isNew bool) {
	n := l.byKey[key]
	if n == nil {
		if len(l.byKey) >= l.most {
			l.drop(l.victim())
		}
		n = &node[V]{key: key}
		l.byKey[key] = n
		l.push(n)
		return &n.value, true
	}
	if n != l.newest {
		l.unlink(n)
		l.push(n)
	}
	return &n.value, false
}

func (l *lru[V]) victim() *node[V] {
	victim := l.oldest
	n := victim.newer
	for i := 1; i < evictLooks && n != nil; i, n = i+1, n.newer {
		if l.worth(&n.value) < l.worth(&victim.value) {
			victim = n
		}
	}
	return victim
}

func (l *lru[V]) drop(n *node[V]) {
	l.unlink(n)
	delete(l.byKey, n.key)
}

func (l *lru[V]) push(n *node[V]) {
	n.older, n.newer = l.newest, nil
	if l.newest != nil {
		l.newest.newer = n
	} else {
		l.oldest = n
	}
	l.newest = n
}

func (l *lru[V]) unlink(n *node[V]) {
	if n.older != nil {
		n.older.newer = n.newer
	} else {
		l.oldest = n.newer
	}
	if n.newer != nil {
		n.newer.older = n.older
	} else {
		l.newest = n.older
	}
}

func (l *lru[V]) len() int { return len(l.byKey) }

// all yields the values, the least recently used first.
func (l *lru[V]) all() iter.Seq2[uint64, *V] {
	return func(yield func(uint64, *V) bool) {
		for n := l.oldest; n != nil; n = n.newer {
			if !yield(n.key, &n.value) {
				return
			}
		}
	}
}
