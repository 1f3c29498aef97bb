package sim

// timer is one entry of the queue of what is due.
type timer struct {
	at    uint64
	order uint64 // of entry, among those of equal time
	proc  *proc
	stamp uint64 // of the proc when it was set; a later stamp makes it void
}

// timers is a binary heap, earliest first. Written out because container/heap allocates for every
// push.
type timers struct {
	heap  []timer
	order uint64
}

func (q *timers) push(at uint64, p *proc) {
	q.order++
	q.heap = append(q.heap, timer{at, q.order, p, p.stamp})
	i := len(q.heap) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !q.less(i, parent) {
			break
		}
		q.heap[i], q.heap[parent] = q.heap[parent], q.heap[i]
		i = parent
	}
}

func (q *timers) pop() timer {
	top := q.heap[0]
	last := len(q.heap) - 1
	q.heap[0] = q.heap[last]
	q.heap = q.heap[:last]
	i := 0
	for {
		child := 2*i + 1
		if child >= last {
			return top
		}
		if child+1 < last && q.less(child+1, child) {
			child++
		}
		if !q.less(child, i) {
			return top
		}
		q.heap[i], q.heap[child] = q.heap[child], q.heap[i]
		i = child
	}
}

func (q *timers) less(i, j int) bool {
	a, b := &q.heap[i], &q.heap[j]
	return a.at < b.at || a.at == b.at && a.order < b.order
}
