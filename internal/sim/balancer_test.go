package sim

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// slowLeast is a slow and obviously right LeastLoaded. It holds the replicas in the order in which
// they reached their number of open calls.
type slowLeast struct{ order []*replica }

func (l *slowLeast) pick() *replica {
	return slices.MinFunc(l.order, func(a, b *replica) int { return a.open - b.open }) // the first of equals
}

func (l *slowLeast) moved(rep *replica) {
	l.remove(rep)
	l.order = append(l.order, rep)
}

func (l *slowLeast) remove(rep *replica) {
	l.order = slices.DeleteFunc(l.order, func(r *replica) bool { return r == rep })
}

func rotationOf(kind Balancer, n int) (*rotation, []replica) {
	r := &run{sc: &Scenario{}, routes: rand.New(rand.NewPCG(1, 1))}
	r.rotation = rotation{run: r, kind: kind, next: -1}
	all := make([]replica, n)
	for i := range all {
		all[i] = replica{run: r, n: i}
		r.rotation.add(&all[i])
	}
	return &r.rotation, all
}

func TestLeastLoadedPicksAsASearchThroughAllDoes(t *testing.T) {
	b, all := rotationOf(LeastLoaded, 13)
	var slow slowLeast
	for i := range all {
		slow.moved(&all[i])
	}
	r := rand.New(rand.NewPCG(1, 2))
	for step := range 20_000 {
		rep := &all[r.IntN(len(all))]
		switch n := r.IntN(10); {
		case n == 0 && rep.index < 0:
			b.add(rep)
			slow.moved(rep)
		case n == 1 && len(b.in) > 1:
			b.remove(rep)
			slow.remove(rep)
		case n < 5 && rep.open > 0:
			b.open(rep, -1)
			if rep.index >= 0 {
				slow.moved(rep)
			}
		default:
			got, want := b.pick(), slow.pick()
			if len(b.in) > 1 && got != want {
				t.Fatalf("step %d: replica %d with %d, want %d with %d", step, got.n, got.open, want.n, want.open)
			}
			b.open(got, 1)
			slow.moved(got)
		}
	}
}

func TestRoundRobinIsFairAndTwoChoicesPreferTheBetter(t *testing.T) {
	b, all := rotationOf(RoundRobin, 5)
	for range 500 {
		b.open(b.pick(), 1)
	}
	for i := range all {
		if all[i].open != 100 {
			t.Errorf("round robin: replica %d has %d of 500", i, all[i].open)
		}
	}
	b, all = rotationOf(PowerOfTwo, 5)
	all[3].open = 1000
	for range 500 {
		b.open(b.pick(), 1)
	}
	if all[3].open != 1000 {
		t.Errorf("the replica with the most was chosen %d times", all[3].open-1000)
	}
}

// The share of a replica that came back grows with time.
func TestAColdReplicaGetsItsShareSlowly(t *testing.T) {
	for _, kind := range []Balancer{RoundRobin, LeastLoaded, PowerOfTwo} {
		b, all := rotationOf(kind, 10)
		b.run.sc.Fleet.SlowStart = 10 * time.Second
		all[4].fullAt = 10 * time.Second
		var recent []*replica
		share := func(now time.Duration) float64 {
			b.run.now = now
			n := 0
			for range 20_000 {
				rep := b.pick()
				if rep == &all[4] {
					n++
				}
				b.open(rep, 1) // answered after a hundred further calls
				if recent = append(recent, rep); len(recent) > 100 {
					b.open(recent[0], -1)
					recent = recent[1:]
				}
			}
			return float64(n) / 20_000
		}
		early, half, full := share(time.Second), share(5*time.Second), share(10*time.Second)
		if early > 0.03 || half < 0.03 || half > 0.08 || full < 0.09 || full > 0.11 {
			t.Errorf("%v: after 1 s %.3f, after 5 s %.3f, after 10 s %.3f", kind, early, half, full)
		}
	}
}
