package gate

import (
	"testing"
	"time"

	"github.com/spillway-go/spillway/limit"
)

// measured is the service time of one kind, of which work ends at even intervals.
type measured struct {
	service
	now, every time.Duration
}

func newMeasured(every time.Duration) *measured {
	return &measured{service: service{kinds: kinds{list: []kind{{}}}}, every: every}
}

func (m *measured) ends(n int, elapsed func(i int) time.Duration) {
	for i := range n {
		m.now += m.every
		d := float64(elapsed(i))
		m.service.end(m.now, &m.kinds.list[0], d, d/10, true, limit.Success)
	}
}

func always(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }

func (m *measured) high() time.Duration { return time.Duration(m.kinds.list[0].high) }

// After a hang of ten seconds the upper quantile once fell by only a thousandth of
// its value with each end. For twenty seconds all work that had to wait was
// refused as too late, with slots free.
func TestAHangIsForgottenWithTheMean(t *testing.T) {
	m := newMeasured(time.Millisecond)
	m.ends(500, always(20*time.Millisecond))
	m.ends(50, always(10*time.Second))
	m.ends(1000, always(20*time.Millisecond))
	if got := m.high(); got > 500*time.Millisecond {
		t.Errorf("a second after the hang nearly all work is thought to take up to %v, not 20 ms", got)
	}
}

// After a bad spell of heavy work the upper quantile once fell by only a tenth of a
// second per second. Meanwhile the queue of a burst could grow to many times
// its proper length.
func TestAQuantileOfManyMeansIsForgottenWithinTwoSeconds(t *testing.T) {
	m := newMeasured(500 * time.Microsecond)
	plain := func(i int) time.Duration { return time.Duration(18+i%5) * time.Millisecond }
	m.ends(2000, plain)
	m.ends(50, always(800*time.Millisecond))
	m.ends(4000, plain)
	if got := m.high(); got > 50*time.Millisecond {
		t.Errorf("two seconds after the spell nearly all work is thought to take up to %v, not 22 ms", got)
	}
}

// A long tail does not count as stale: the quantile of widely scattered times
// stays where it is.
func TestALongTailKeepsItsQuantile(t *testing.T) {
	m, sum := newMeasured(time.Millisecond), time.Duration(0)
	const known, n = 2000, 50_000
	for i := range n {
		elapsed := 10 * time.Millisecond
		if i%100*37%100 < 8 { // eight in a hundred take a hundred times as long; the mean is 89 ms
			elapsed = time.Second
		}
		if m.ends(1, always(elapsed)); i >= known {
			sum += m.high()
		}
	}
	if got := sum / (n - known); got < 700*time.Millisecond {
		t.Errorf("nearly all work is thought to take up to %v, not 1 s", got)
	}
}

// Of a crowd of ends only some are evidence. A change of the service time is still known at once.
func TestACrowdOfEndsTellsWhatEachEndWouldTell(t *testing.T) {
	g := New(Config{Law: limit.NewFixed(1000), QueueSize: 10, MaxWait: time.Second})
	now, running := time.Second, []Grant(nil)
	run := func(elapsed time.Duration) (ended, told int) {
		for range 20_000 {
			now += 5 * time.Microsecond
			g.Arrive(now, Arrival{Cost: 1, Deadline: Never}, nil)
			running = append(running, g.Started())
			for k := &g.service.kinds.list[0]; running[0].Start <= now-elapsed; running = running[1:] {
				last := k.last
				if g.End(now, running[0], limit.Success); k.last != last {
					told++
				}
				ended++
			}
		}
		return ended, told
	}
	run(time.Millisecond)
	ended, told := run(3 * time.Millisecond)
	if told < ended/oneIn || told > ended/oneIn+2*manyEnds {
		t.Errorf("%d of %d ends in a tenth of a second were evidence", told, ended)
	}
	if took := g.Took(); took < 2900*time.Microsecond || took > 3100*time.Microsecond {
		t.Errorf("a tenth of a second after work has begun to take 3 ms, it is thought to take %v", took)
	}
	if n := int(g.tallies.first.Service.Count()) + len(running); n != 40_000 {
		t.Errorf("%d of 40000 times were recorded, or are still to come", n)
	}
}

// A page with seven calls makes ends in groups of seven. The ends that are evidence are no fixed one of a
// group: the slow seventh once counted in every mean, or in none.
func TestEvidenceIsNoFixedPartOfAGroup(t *testing.T) {
	for _, group := range []int{7, 8, 14} {
		g := New(Config{Law: limit.NewFixed(1000), QueueSize: 1000, MaxWait: time.Minute})
		now, sum, means := time.Second, 0.0, 0.0
		const n = 100_000
		for i := range n {
			now += 25 * time.Microsecond
			g.Arrive(now, Arrival{Cost: 1, Deadline: Never}, nil)
			w, took := g.Started(), 100*time.Microsecond
			if i%group == 0 {
				took = 10 * time.Millisecond
			}
			w.Start -= took
			g.End(now, w, limit.Success)
			sum, means = sum+float64(took)/n, means+g.service.mean/n
		}
		if means < 0.8*sum || means > 1.2*sum {
			t.Errorf("in groups of %d work takes %v, and is thought to take %v", group, time.Duration(sum), time.Duration(means))
		}
	}
}
