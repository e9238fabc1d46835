package sim

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestEventsComeInOrder compares the queue with a sorted slice, for events in lanes, timers and the
// heap. In an earlier version the search for the earliest of four children continued into the
// children of the next node, so some events came late.
func TestEventsComeInOrder(t *testing.T) {
	const replicas = 7
	r := rand.New(rand.NewPCG(1, 2))
	a := eventQueue{timers: newTimers(replicas)}
	var all []event // in order
	insert := func(e event) {
		i, _ := slices.BinarySearchFunc(all, e, func(a, b event) int {
			if a.before(&b) {
				return -1
			}
			return 1
		})
		all = slices.Insert(all, i, e)
	}
	unarm := func(of int) {
		all = slices.DeleteFunc(all, func(e event) bool { return e.kind == timer && e.gen == uint32(of) })
	}
	now := time.Duration(0)
	for i := range 200_000 {
		if len(all) > 0 && (len(all) > 500 || r.IntN(20) >= 11) {
			e, ok := a.next()
			if !ok || e != all[0] {
				t.Fatalf("step %d: %+v, want %+v", i, e, all[0])
			}
			now, all = e.at, all[1:]
			continue
		}
		at := now + time.Duration(r.IntN(1000)) // equal times are common
		switch r.IntN(5) {
		case 0:
			a.add(at, arrive, nil, uint32(i))
			insert(event{at, a.seq, nil, uint32(i), arrive})
		case 1:
			of := r.IntN(replicas)
			unarm(of)
			a.arm(of, at)
			insert(event{at, a.seq, nil, uint32(of), timer})
		case 2:
			of := r.IntN(replicas)
			unarm(of)
			a.disarm(of)
		default: // in a lane, sometimes out of order
			if r.IntN(4) > 0 {
				at = now + 1000
			}
			a.follow(r.IntN(lanes), at, expire, nil, uint32(i))
			insert(event{at, a.seq, nil, uint32(i), expire})
		}
	}
	for _, want := range all {
		if e, ok := a.next(); !ok || e != want {
			t.Fatalf("%+v, want %+v", e, want)
		}
	}
	if _, ok := a.next(); ok {
		t.Error("an event is left")
	}
}
