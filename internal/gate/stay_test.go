package gate

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/spillway-go/spillway/limit"
)

// Callers without a deadline that leave after a time are refused at once if they would leave before
// their turn, because a longer wait is useless. Callers that stay wait as before.
func TestHowLongCallersStayIsLearnt(t *testing.T) {
	for _, c := range []struct {
		stay                        time.Duration
		leastLeft, mostLeft, waited float64 // shares of the callers of the second half
	}{
		{200 * time.Millisecond, 0, 0.1, 0.3}, // probes, and work that ends within a millisecond of the stay
		{time.Hour, 0, 0, 0.4},
	} {
		m := newOneSlot(100*time.Millisecond, c.stay)
		m.run(20, 60*time.Second) // twice the capacity
		m.came, m.left, m.waited = 0, 0, 0
		m.run(20, 120*time.Second)
		left, waited := m.left/m.came, m.waited/m.came
		if left < c.leastLeft || left > c.mostLeft || waited < c.waited {
			t.Errorf("who stays for %v: of %.0f a part of %.2f have waited and %.2f left", c.stay, m.came, waited, left)
		}
	}
}

// oneSlot is a gate of one slot with callers that have no deadline and leave after a time.
type oneSlot struct {
	g                  *Gate
	r                  *rand.Rand
	now, takes, stay   time.Duration
	next               time.Duration // next arrival
	waiting            []*Waiter
	running            Grant
	until              time.Duration // end of the running work; 0: none runs
	came, waited, left float64
}

func newOneSlot(takes, stay time.Duration) *oneSlot {
	return &oneSlot{g: New(Config{Law: limit.NewFixed(1), QueueSize: 1000, MaxWait: time.Minute}), r: rand.New(rand.NewPCG(1, 1)), takes: takes, stay: stay}
}

func (m *oneSlot) begin() {
	m.running = m.g.Started()
	m.until = min(m.now+m.takes, m.now-m.running.Waited+m.stay)
}

func (m *oneSlot) grant() {
	for {
		w, granted := m.g.Next(m.now)
		if w == nil {
			return
		}
		m.waiting = slices.DeleteFunc(m.waiting, func(other *Waiter) bool { return other == w })
		if granted {
			m.g.Taken(w, 0)
			m.begin()
		}
	}
}

// run goes on until end with perSecond arrivals a second.
func (m *oneSlot) run(perSecond float64, end time.Duration) {
	for ; m.now < end; m.now += time.Millisecond {
		if m.until > 0 && m.now >= m.until {
			o := limit.Success
			if m.until < m.running.Start+m.takes {
				o = limit.Canceled
				m.left++
			}
			m.until = 0
			m.g.End(m.now, m.running, o)
			m.grant()
		}
		for len(m.waiting) > 0 && m.now-m.waiting[0].Since() >= m.stay {
			m.g.Leave(m.now, m.waiting[0])
			m.waiting = m.waiting[1:]
			m.left++
		}
		for ; m.next <= m.now; m.next += time.Duration(m.r.ExpFloat64() / perSecond * float64(time.Second)) {
			m.came++
			w := &Waiter{}
			switch d := m.g.Arrive(m.now, Arrival{Cost: 1, Deadline: Never}, w); d.Action {
			case Admit:
				m.begin()
			case Wait:
				m.waited++
				m.waiting = append(m.waiting, w)
			}
		}
	}
}

// Some callers always leave early, such as a hedge that has lost. Other callers are not refused
// because of them.
func TestCallersThatLeaveAmongOthersThatStayAreNoEvidence(t *testing.T) {
	var s stay
	const ms = 1e6
	for i := range 1000 {
		if i%2 == 0 {
			s.leave(200 * ms)
		} else {
			s.end(400*ms, limit.Success)
		}
	}
	if most := s.most(); most < 1e300 {
		t.Errorf("callers are taken to stay for %v", most)
	}
	for range 100 {
		s.leave(1000 * ms)
	}
	if most := s.most(); most < 900*ms || most > 1000*ms {
		t.Errorf("callers are taken to stay for %v, and all leave after a second", time.Duration(most))
	}
	for range 1000 { // a crowd that sends and leaves at once
		s.leave(1)
	}
	if most := s.most(); most != float64(burstLeast) {
		t.Errorf("others of the kind may wait for %v", time.Duration(most))
	}
}
