package sim

import "time"

// timers holds at most one timer for each replica, the earliest first. Setting a timer again moves
// it, so no timer is ever stale.
type timers struct {
	heap  []alarm
	place []int32 // place of each replica's timer in the heap, counted from 1; 0: no timer
}

type alarm struct {
	at  time.Duration
	seq uint64
	of  int32
}

func (a *alarm) before(b *alarm) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }

func newTimers(replicas int) timers {
	return timers{make([]alarm, 0, replicas), make([]int32, replicas)}
}

func (t *timers) set(of int, at time.Duration, seq uint64) {
	e := alarm{at, seq, int32(of)}
	i := int(t.place[of]) - 1
	if i < 0 {
		i = len(t.heap)
		t.heap = append(t.heap, e)
	}
	t.fix(i, e)
}

func (t *timers) clear(of int) {
	i := int(t.place[of]) - 1
	if i < 0 {
		return
	}
	t.place[of] = 0
	n := len(t.heap) - 1
	last := t.heap[n]
	t.heap = t.heap[:n]
	if i < n {
		t.fix(i, last)
	}
}

// fix puts e at its place in the heap. Place i must be free.
func (t *timers) fix(i int, e alarm) {
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(&t.heap[parent]) {
			break
		}
		t.put(i, t.heap[parent])
		i = parent
	}
	for {
		child := 4*i + 1
		if child >= len(t.heap) {
			break
		}
		for k := child + 1; k < min(4*i+5, len(t.heap)); k++ {
			if t.heap[k].before(&t.heap[child]) {
				child = k
			}
		}
		if !t.heap[child].before(&e) {
			break
		}
		t.put(i, t.heap[child])
		i = child
	}
	t.put(i, e)
}

func (t *timers) put(i int, e alarm) {
	t.heap[i] = e
	t.place[e.of] = int32(i) + 1
}
