package gate

import (
	"slices"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
)

// twin is the slow, obviously right gate: slices, and every count taken anew.
type twin struct {
	limit, room     int
	closed          spillway.Reason
	running         []int // costs
	waiting         []*Waiter
	granted         []int // costs, of waiters that have not answered
	offered, ended  int
	cancelled       int
	rejected        map[spillway.Reason]int
	admitted, would int
}

func (m *twin) used() (n int) {
	for _, c := range slices.Concat(m.running, m.granted) {
		n += c
	}
	return n
}

func (m *twin) fits(cost int) bool { return m.used() == 0 || m.used()+cost <= m.limit }

func (m *twin) leave(w *Waiter) bool {
	i := slices.Index(m.waiting, w)
	if i >= 0 {
		m.waiting = slices.Delete(m.waiting, i, i+1)
	}
	return i >= 0
}

// FuzzGate drives gate and twin through the same random life and compares every
// answer and, after every step, the whole ledger.
func FuzzGate(f *testing.F) {
	f.Add(uint8(3), uint8(2), []byte{0, 0, 0, 0, 0, 1, 1, 2, 3, 4, 5, 0, 1})
	f.Add(uint8(1), uint8(0), []byte{0, 10, 20, 1, 6, 0, 7, 7})
	f.Fuzz(func(t *testing.T, slots, room uint8, ops []byte) {
		n := int(slots)%9 + 1
		g := New(limit.NewFixed(n), int(room)%7)
		m := &twin{limit: n, room: int(room) % 7, rejected: map[spillway.Reason]int{}}
		var everybody []*Waiter
		for i, op := range ops {
			now := time.Duration(i) * time.Millisecond
			arg := int(op) / 10
			switch op % 10 {
			case 0, 1, 2: // an arrival that may wait, or not
				cost := arg%6 + 1
				var w *Waiter
				if op%10 != 2 {
					w = &Waiter{Owner: i}
					everybody = append(everybody, w)
				}
				got := g.Arrive(now, cost, w)
				m.offered++
				var want Decision
				switch {
				case m.closed != 0:
					want = Decision{Reject, m.closed}
					m.rejected[m.closed]++
				case len(m.waiting) == 0 && m.fits(cost):
					want = Decision{Verdict: Admit}
					m.running = append(m.running, cost)
					m.admitted++
				case w != nil && len(m.waiting) < m.room:
					want = Decision{Verdict: Wait}
					m.waiting = append(m.waiting, w)
				default:
					want = Decision{Reject, spillway.QueueFull}
					m.rejected[spillway.QueueFull]++
				}
				if got != want {
					t.Fatalf("op %d: arrival of cost %d: %+v, want %+v", i, cost, got, want)
				}
			case 3, 4: // an end, then grants
				if len(m.running) == 0 {
					break
				}
				k := arg % len(m.running)
				g.End(now, 0, m.running[k], nil)
				m.running = slices.Delete(m.running, k, k+1)
				m.ended++
				for w := g.Next(); w != nil; w = g.Next() {
					if len(m.waiting) == 0 || m.waiting[0] != w || !m.fits(w.Cost()) {
						t.Fatalf("op %d: granted the wrong waiter", i)
					}
					m.waiting = m.waiting[1:]
					m.granted = append(m.granted, w.Cost())
				}
				if len(m.waiting) > 0 && m.fits(m.waiting[0].Cost()) {
					t.Fatalf("op %d: a wake-up was lost", i)
				}
			case 5, 6: // somebody leaves, or waited too long; also those who are long gone
				if len(everybody) == 0 {
					break
				}
				w := everybody[arg%len(everybody)]
				want := m.leave(w)
				if op%10 == 5 {
					if g.Leave(w) != want {
						t.Fatalf("op %d: leave is not %v", i, want)
					}
					if want {
						m.cancelled++
					}
				} else {
					if g.Expire(w) != want {
						t.Fatalf("op %d: expire is not %v", i, want)
					}
					if want {
						m.rejected[spillway.WaitTooLong]++
					}
				}
			case 7: // a dry-run arrival
				cost, mayWait := arg%6+1, arg%2 == 0
				got := g.Force(cost, mayWait)
				m.offered++
				if m.closed != 0 {
					m.rejected[m.closed]++
				} else {
					spare := 0
					if mayWait {
						spare = m.room
					}
					if !m.fits(cost) && m.used()+cost > m.limit+spare {
						m.would++
					}
					m.running = append(m.running, cost)
					m.admitted++
				}
				if (got.Verdict == Reject) != (m.closed != 0) {
					t.Fatalf("op %d: force: %+v", i, got)
				}
			case 8: // a grant is taken, or nobody is there to take it
				if len(m.granted) == 0 {
					break
				}
				cost := m.granted[0]
				m.granted = m.granted[1:]
				if arg%2 == 0 {
					g.Taken(0)
					m.running = append(m.running, cost)
					m.admitted++
				} else {
					g.Revoke(cost)
					m.cancelled++
				}
			case 9:
				if arg%4 != 0 {
					g.Abandoned()
					m.offered++
					m.cancelled++
					break
				}
				reason := []spillway.Reason{spillway.Draining, spillway.Closed}[arg/4%2]
				g.CloseIntake(reason)
				if m.closed != spillway.Closed {
					m.closed = reason
				}
				if w := g.Drop(); w != nil {
					m.leave(w)
					m.rejected[m.closed]++
				} else if len(m.waiting) > 0 {
					t.Fatalf("op %d: nobody to drop of %d", i, len(m.waiting))
				}
			}
			c := g.Counts()
			if int(c.Offered) != m.offered || int(c.Admitted) != m.admitted || int(c.Completed) != m.ended ||
				int(c.Cancelled) != m.cancelled || int(c.WouldReject) != m.would ||
				g.InFlight() != m.used() || g.Queued() != len(m.waiting)+len(m.granted) || g.Idle() != (m.used() == 0 && len(m.waiting) == 0) {
				t.Fatalf("op %d (%d): gate %+v with %d in flight, %d queued; twin %+v", i, op%10, c, g.InFlight(), g.Queued(), m)
			}
			if c.Offered != c.Admitted+c.Rejected()+c.Cancelled+uint64(g.Queued()) {
				t.Fatalf("op %d: the ledger does not close: %+v", i, c)
			}
			for r, n := range m.rejected {
				if int(c.RejectedBy[r]) != n {
					t.Fatalf("op %d: %d rejected by %v, want %d", i, c.RejectedBy[r], r, n)
				}
			}
		}
	})
}

func TestRetryAfterIsTheBacklogOverTheDrainRate(t *testing.T) {
	g := New(limit.NewFixed(1), 10)
	if got := g.RetryAfter(0); got != 0 {
		t.Fatalf("advice %v from nothing", got)
	}
	now := time.Duration(0)
	for range 40 { // 20 a second
		g.Arrive(now, 1, nil)
		now += 50 * time.Millisecond
		g.End(now, now-50*time.Millisecond, 1, nil)
	}
	g.Arrive(now, 1, nil)
	for range 9 {
		g.Arrive(now, 1, &Waiter{})
	}
	if got := g.RetryAfter(now); got < 400*time.Millisecond || got > 600*time.Millisecond {
		t.Errorf("ten ahead at 20 a second: %v, want about 500ms", got)
	}
	if g.CloseIntake(spillway.Closed); g.RetryAfter(now) != 0 {
		t.Error("a closed gate tells callers to come back")
	}
}
