package limit

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// model is a closed loop in virtual time: an endless supply of callers, a law that sets the limit,
// and a backend with slots and a queue in front of them.
type model struct {
	law      Law
	slots    slots // nil: unlimited
	service  time.Duration
	noise    float64       // largest deviation, as a share of the service time
	deadline time.Duration // from admission; 0: none
	outcome  func(r *rand.Rand, o Outcome) Outcome
	demand   int // highest concurrency of the callers; 0: unlimited
	passive  bool
	outside  func(r *rand.Rand) time.Duration // time after the slot until the work ends; nil: none
	slowness func(now time.Duration) float64  // factor on all times; nil: 1

	rand *rand.Rand
	now  time.Duration
	seq  uint64
	ends ends
	done int // successes
}

// oneGoroutine skips a test of millions of events in one goroutine under the race detector. Such
// a test is ten times as slow there and cannot have a race. The allocations step of CI runs it.
func oneGoroutine(t *testing.T) {
	t.Helper()
	if raceEnabled {
		t.Skip("a long simulation in one goroutine: runs without the race detector")
	}
}

type pending struct {
	at time.Duration
	s  Sample
}

// ends is a heap of running work, ordered by its end.
type ends []pending

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i].at < e[j].at }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)        { *e = append(*e, x.(pending)) }
func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// slots is a heap of the times at which slots become free.
type slots []time.Duration

func (s slots) Len() int           { return len(s) }
func (s slots) Less(i, j int) bool { return s[i] < s[j] }
func (s slots) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *slots) Push(x any)        { *s = append(*s, x.(time.Duration)) }
func (s *slots) Pop() any          { panic("slots are not taken away") }

func newModel(law Law, n int, service time.Duration) *model {
	m := &model{law: law, service: service, noise: 0.1, rand: rand.New(rand.NewPCG(1, 2))}
	if n > 0 {
		m.slots = make(slots, n)
	}
	return m
}

// grow adds slots to the backend.
func (m *model) grow(n int) {
	for range n {
		heap.Push(&m.slots, m.now)
	}
}

func (m *model) load() Load {
	switch {
	case m.passive:
		return Load{InFlight: len(m.ends)}
	case m.demand > 0:
		return Load{InFlight: len(m.ends), Queued: max(0, m.demand-m.law.Limit())}
	}
	return Load{InFlight: len(m.ends), Queued: 1000}
}

func (m *model) room() bool {
	if m.demand > 0 && len(m.ends) >= m.demand {
		return false
	}
	return m.passive || len(m.ends) < m.law.Limit()
}

func (m *model) admit() {
	elapsed := time.Duration(float64(m.service) * (1 + m.noise*(2*m.rand.Float64()-1)))
	slowness := 1.0
	if m.slowness != nil {
		slowness = m.slowness(m.now)
		elapsed = time.Duration(float64(elapsed) * slowness)
	}
	end := m.now + elapsed
	if m.slots != nil {
		end = max(m.slots[0], m.now) + elapsed
		m.slots[0] = end
		heap.Fix(&m.slots, 0)
	}
	if m.outside != nil {
		end += time.Duration(float64(m.outside(m.rand)) * slowness)
	}
	m.seq++
	s := Sample{Seq: m.seq, Start: m.now}
	if m.deadline > 0 && end-m.now > m.deadline {
		// The caller leaves, but the backend goes on.
		end, s.Outcome = m.now+m.deadline, Deadline
	}
	if m.outcome != nil {
		s.Outcome = m.outcome(m.rand, s.Outcome)
	}
	s.End = end
	heap.Push(&m.ends, pending{end, s})
	m.law.Admit(m.now, m.load())
}

// until runs the loop until stop returns true or the end is reached.
func (m *model) until(end time.Duration, stop func() bool) bool {
	for m.now < end {
		for m.room() {
			m.admit()
		}
		p := heap.Pop(&m.ends).(pending)
		m.now = p.at
		if p.s.Outcome == Success {
			m.done++
		}
		m.law.Observe(p.s, m.load())
		if stop != nil && stop() {
			return true
		}
	}
	return false
}

func (m *model) run(d time.Duration) { m.until(m.now+d, nil) }

// middle runs the model for d and returns the median limit during d.
func (m *model) middle(d time.Duration) int {
	var seen []int
	m.until(m.now+d, func() bool { seen = append(seen, m.law.Limit()); return false })
	slices.Sort(seen)
	return seen[len(seen)/2]
}
