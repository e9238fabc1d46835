package sim

import (
	"fmt"
	"slices"
	"time"
)

// Balancer selects the replica for each call: RoundRobin, LeastLoaded or PowerOfTwo.
type Balancer uint8

const (
	// RoundRobin takes the replicas in turn.
	RoundRobin Balancer = iota
	// LeastLoaded takes the replica with the fewest open calls. Among equals, it takes the replica
	// that reached its number first. An open call is sent and not answered.
	LeastLoaded
	// PowerOfTwo takes the less loaded of two random replicas.
	PowerOfTwo
)

var balancers = [...]string{"round robin", "least loaded", "power of two choices"}

// String returns the usual name.
func (b Balancer) String() string {
	if int(b) < len(balancers) {
		return balancers[b]
	}
	return fmt.Sprintf("Balancer(%d)", uint8(b))
}

// rotation is the replicas to which the balancer sends calls.
type rotation struct {
	run    *run
	kind   Balancer
	in     []*replica // in no order
	next   int
	loads  []ranks    // replicas with a full share, by their number of open calls
	lowest int        // the lowest number of open calls in loads
	cold   []*replica // replicas without a full share yet; LeastLoaded only
}

// ranks is a list of replicas with the same number of open calls, in the order in which they
// reached the number.
type ranks struct{ first, last *replica }

// leastShare is the smallest share of a replica that has just come back, relative to a full share.
const leastShare = 0.05

// pick returns the replica for the next call, or nil if no replica is left. The share of a replica
// that came back recently grows with time.
func (b *rotation) pick() *replica {
	switch n := len(b.in); {
	case n == 0:
		return nil
	case n == 1:
		return b.in[0]
	case b.kind == LeastLoaded:
		return b.leastLoaded()
	case b.kind == PowerOfTwo:
		r := b.run.routes
		i, j := r.IntN(n), r.IntN(n-1)
		if j >= i {
			j++
		}
		if b.weight(b.in[j]) < b.weight(b.in[i]) {
			i = j
		}
		return b.in[i]
	}
	for {
		b.next = (b.next + 1) % len(b.in)
		if rep := b.in[b.next]; rep.fullAt <= b.run.now || b.run.routes.Float64() < rep.share(b.run.now) {
			return rep
		}
	}
}

// share returns the part of a full share of the calls that a recently started replica gets.
func (rep *replica) share(now time.Duration) float64 {
	slow := rep.run.sc.Fleet.SlowStart
	return max(leastShare, 1-float64(rep.fullAt-now)/float64(slow))
}

// weight returns the number of open calls with one more call, divided by the replica's share.
func (b *rotation) weight(rep *replica) float64 {
	if rep.fullAt <= b.run.now {
		return float64(rep.open + 1)
	}
	return float64(rep.open+1) / rep.share(b.run.now)
}

// leastLoaded returns the least loaded replica. The calls of cold replicas are weighted by their share.
func (b *rotation) leastLoaded() *replica {
	best, lowest := b.loads[b.lowest].first, float64(b.lowest+1)
	for i := 0; i < len(b.cold); i++ {
		rep := b.cold[i]
		if rep.fullAt <= b.run.now {
			b.delist(rep)
			rep.fullAt = 0
			b.enlist(rep)
			return b.leastLoaded()
		}
		if n := b.weight(rep); best == nil || n < lowest {
			best, lowest = rep, n
		}
	}
	return best
}

func (b *rotation) add(rep *replica) {
	rep.index = len(b.in)
	b.in = append(b.in, rep)
	b.enlist(rep)
}

func (b *rotation) remove(rep *replica) {
	if rep.index < 0 {
		return
	}
	last := b.in[len(b.in)-1]
	b.in[rep.index], last.index = last, rep.index
	b.in = b.in[:len(b.in)-1]
	b.delist(rep)
	rep.index = -1
}

// open adds more to the replica's number of open calls; more may be negative.
func (b *rotation) open(rep *replica, more int) {
	if b.kind != LeastLoaded || rep.index < 0 {
		rep.open += more
		return
	}
	b.delist(rep)
	rep.open += more
	b.enlist(rep)
}

func (b *rotation) enlist(rep *replica) {
	if b.kind != LeastLoaded {
		return
	}
	for len(b.loads) <= rep.open {
		b.loads = append(b.loads, ranks{})
	}
	if rep.fullAt > b.run.now {
		b.cold = append(b.cold, rep)
		return
	}
	l := &b.loads[rep.open]
	rep.previous, rep.next = l.last, nil
	if l.last == nil {
		l.first = rep
	} else {
		l.last.next = rep
	}
	l.last = rep
	b.lowest = min(b.lowest, rep.open)
}

func (b *rotation) delist(rep *replica) {
	if b.kind != LeastLoaded {
		return
	}
	if i := slices.Index(b.cold, rep); i >= 0 {
		b.cold = slices.Delete(b.cold, i, i+1)
		return
	}
	l := &b.loads[rep.open]
	if rep.previous == nil {
		l.first = rep.next
	} else {
		rep.previous.next = rep.next
	}
	if rep.next == nil {
		l.last = rep.previous
	} else {
		rep.next.previous = rep.previous
	}
	for b.lowest < len(b.loads)-1 && b.loads[b.lowest].first == nil {
		b.lowest++
	}
}
