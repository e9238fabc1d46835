package budget

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/soak"
)

// simulate runs a world, every third one with fewer slots than replicas. With groups the single value
// has room for three replicas, and a group for as many.
func simulate(t *testing.T, seed uint64, keep, groups bool) (overshoot int) {
	w := &world{
		t: t, r: rand.New(rand.NewPCG(seed, 3)), total: total, keep: keep,
		crowd: 8, alone: MostAlone, most: MostMembers, store: simStore{values: map[string]simValue{}},
	}
	if groups {
		w.crowd, w.alone, w.most = 16, 3, 3
	}
	if seed%3 == 2 {
		w.total = 1 + w.r.IntN(3)
	}
	for range 2 + w.r.IntN(6) {
		w.join()
	}
	for w.now < 40*time.Second {
		if w.r.IntN(60) == 0 {
			w.disturb()
		}
		w.step()
	}
	overshoot = w.worst
	w.calm, w.store.away = true, false
	for _, n := range w.nodes {
		n.cut, n.paused, n.had = false, 0, false
	}
	calm := 8 * simTTL
	if w.total < len(w.nodes) {
		calm += time.Duration(len(w.nodes)/w.total+1) * leastTurn
	}
	if groups {
		calm *= 4
	}
	for end := w.now + calm; w.now < end; {
		w.step()
	}
	has, wants := 0, 0
	for _, n := range w.nodes {
		if n.gone {
			continue
		}
		if n.told.Standing != Held {
			t.Fatalf("in calm %s is %v", n.id, n.told.Standing)
		}
		if n.demand > 0 && !n.had {
			t.Fatalf("in calm %s had nothing of %d in %v", n.id, w.total, calm)
		}
		has += n.told.Amounts[Slots]
		wants += n.demand
	}
	if w.total == total && has < total*3/4 {
		t.Fatalf("in calm %d of %d are leased; %d are wanted", has, w.total, wants)
	}
	return overshoot
}

// The amounts in use exceed the total at most by the leases of replicas that lost their lease while
// their work ran. The bound holds whatever happens to the network, the processes and their clocks.
func TestTheBoundHoldsInEveryWorld(t *testing.T) {
	soak.WithoutRace(t)
	seeds := uint64(30)
	if testing.Short() {
		seeds = 5
	}
	for n := range 4 {
		keep, groups, worst := n%2 == 1, n >= 2, 0
		if groups {
			seeds = min(seeds, 12)
		}
		for seed := range seeds {
			t.Run(fmt.Sprintf("keep=%v/groups=%v/%d", keep, groups, seed), func(t *testing.T) { worst = max(worst, simulate(t, seed, keep, groups)) })
		}
		t.Logf("keep=%v, groups=%v: the worst overshoot over %d was %d", keep, groups, total, worst)
	}
}

func FuzzWorld(f *testing.F) {
	f.Add(uint64(1), true, false)
	f.Add(uint64(1), true, true)
	f.Fuzz(simulateFor)
}

func simulateFor(t *testing.T, seed uint64, keep, groups bool) { simulate(t, seed, keep, groups) }
