package sim

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestEventsComeInOrder: in an earlier version the search for the earliest of four
// children continued into the children of the next node, so some events came late.
func TestEventsComeInOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var a eventQueue
	now := time.Duration(0)
	for i := range 500_000 {
		if n := len(a.heap); n == 0 || n < 2000 && r.IntN(20) < 11 {
			a.add(now+time.Duration(r.ExpFloat64()*1e6), arrive, nil, 0)
			continue
		}
		e, _ := a.next()
		if e.at < now {
			t.Fatalf("step %d: %v comes after %v", i, e.at, now)
		}
		now = e.at
	}
}
