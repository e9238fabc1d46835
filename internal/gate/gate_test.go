package gate

import (
	"slices"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/places"
	"github.com/spillway-go/spillway/internal/priority"
	"github.com/spillway-go/spillway/limit"
)

// twin is slow, obviously correct bookkeeping: slices, and every count computed
// anew. The gate decides alone whether work waits or is refused for lack of time. The twin
// checks that the gate was free to decide so.
type twin struct {
	limit, room    int
	closed         spillway.Reason
	absent         bool // the caller that is granted next has left
	running        []Grant
	waiting        [levels][]*Waiter
	offered, ended int
	cancelled      int
	admitted       int
	would          int // refused by a dry run's request
	rejected       map[spillway.Reason]int
	passed         map[*Waiter]bool // large work that later waiters pass
}

func (m *twin) used() (n int) {
	for _, g := range m.running {
		if !g.Long {
			n += g.Cost
		}
	}
	return n
}

// short is how many pieces of work run, without long work.
func (m *twin) short() (n int) {
	for _, g := range m.running {
		if !g.Long {
			n++
		}
	}
	return n
}

func (m *twin) queued() (n int) {
	for _, q := range m.waiting {
		n += len(q)
	}
	return n
}

func (m *twin) fits(cost int) bool { return m.short() == 0 || m.used()+cost <= m.limit }

// turn is the waiter whose turn it is: the most important, or at a turn of the floor the least.
func (m *twin) turn(floor bool) *Waiter {
	order := m.waiting[:]
	if floor {
		order = slices.Clone(order)
		slices.Reverse(order)
	}
	var large *Waiter
	for _, q := range order {
		switch {
		case len(q) == 0:
			continue
		case floor || !m.passed[q[0]]:
			return q[0]
		case large == nil:
			large = q[0]
		}
		if len(q) > 1 && m.fits(q[1].cost) {
			return q[1]
		}
	}
	return large
}

// look asks the gate which large work other waiters may pass.
func (m *twin) look(g *Gate, now time.Duration) {
	m.passed = map[*Waiter]bool{}
	for _, q := range m.waiting {
		if len(q) > 0 && g.blocks(now, q[0]) {
			m.passed[q[0]] = true
		}
	}
}

func (m *twin) leave(w *Waiter) bool {
	for lv, q := range m.waiting {
		if i := slices.Index(q, w); i >= 0 {
			m.waiting[lv] = slices.Delete(q, i, i+1)
			return true
		}
	}
	return false
}

// victim is the waiter that loses its place to work of a level.
func (m *twin) victim(lv int) *Waiter {
	for i := levels - 1; i > lv; i-- {
		if q := m.waiting[i]; len(q) > 0 {
			return q[len(q)-1]
		}
	}
	return nil
}

// arrive checks the gate's decision and follows it.
func (m *twin) arrive(t *testing.T, a Arrival, w *Waiter, d Decision, seq uint64, now time.Duration) {
	t.Helper()
	lv := priority.Level(a.Priority)
	m.offered++
	ahead := 0
	for i := range lv + 1 {
		if ahead += len(m.waiting[i]); len(m.waiting[i]) > 0 && m.passed[m.waiting[i][0]] {
			ahead--
		}
	}
	free := ahead == 0 && m.fits(a.Cost)
	inTime := d.Action == Reject && d.Reason == spillway.ReasonDeadlineTooClose
	if inTime && a.Deadline == Never && free {
		t.Fatal("refused for a deadline that it has not")
	}
	switch {
	case m.closed == 0 && a.Traits == DryRun && d.Action != Admit:
		t.Fatalf("a dry run: %+v", d)
	case m.closed == 0 && a.Traits == OverShare && !free && d.Reason != spillway.ReasonQuota && d.Reason != spillway.ReasonDeadlineTooClose:
		t.Fatalf("over its share: %+v", d)
	case m.closed == 0 && a.Traits == DryRun:
	case m.closed != 0:
		if d != (Decision{Action: Reject, Reason: m.closed}) {
			t.Fatalf("closed for %v: %+v", m.closed, d)
		}
	case free && !inTime && d.Action != Admit && (d.Action != Wait || m.queued() == ahead), !free && d.Action == Admit:
		t.Fatalf("free %v, %+v", free, d)
	case d.Action == Wait && (w == nil || m.room == 0):
		t.Fatal("waits where nobody may")
	case d.Action == Wait && (m.queued() >= m.room) != (d.Preempted != nil):
		t.Fatalf("%d of %d wait, preempted %v", m.queued(), m.room, d.Preempted)
	case d.Action == Wait && d.Preempted != nil && d.Preempted != m.victim(lv):
		t.Fatal("the wrong waiter was preempted")
	case d.Action == Reject && d.Reason == spillway.ReasonQueueFull && w != nil && m.room > 0 &&
		(m.queued() < m.room || m.victim(lv) != nil):
		t.Fatal("the queue is not full")
	}
	switch d.Action {
	case Admit:
		m.admit(Grant{Seq: seq, Start: now, Cost: a.Cost, Priority: a.Priority, Long: a.Traits == Long})
		if d.Reason != 0 {
			m.would++
		}
	case Wait:
		if d.Preempted != nil {
			m.leave(d.Preempted)
			m.rejected[spillway.ReasonPreempted]++
		}
		m.waiting[lv] = append(m.waiting[lv], w)
	case Reject:
		m.rejected[d.Reason]++
	}
}

func (m *twin) admit(g Grant) {
	m.admitted++
	m.running = append(m.running, g)
}

func priorityOf(lv int) spillway.Priority { return spillway.Critical - spillway.Priority(lv) }

// FuzzGate drives gate and twin through the same life and compares every answer
// and, after every step, the whole ledger.
func FuzzGate(f *testing.F) {
	f.Add(uint8(3), uint8(2), []byte{0, 0, 0, 0, 0, 1, 1, 2, 3, 4, 5, 0, 1})
	f.Add(uint8(1), uint8(0), []byte{0, 10, 20, 1, 6, 0, 7, 7})
	f.Add(uint8(2), uint8(5), []byte{0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 3, 13, 23, 3, 3, 0, 10, 200, 3, 8, 9})
	f.Add(uint8(202), uint8(5), []byte{20, 10, 20, 4, 30, 24, 50, 3, 60, 101, 3, 13, 23, 44, 3, 0, 10, 200, 3, 8, 9})
	f.Fuzz(func(t *testing.T, slots, room uint8, ops []byte) {
		n := int(slots)%9 + 1
		cfg := Config{Law: limit.NewFixed(n), QueueSize: int(room) % 7, MaxWait: time.Second}
		if slots > 200 {
			cfg.MaxWait = Never
		}
		g := New(cfg)
		m := &twin{limit: n, room: int(room) % 7, rejected: map[spillway.Reason]int{}}
		var everybody []*Waiter
		now := time.Duration(0)
		for i, op := range ops {
			now += time.Duration(op%7) * 3 * time.Millisecond
			arg := int(op) / 10
			switch op % 10 {
			case 0, 1, 2: // an arrival that may wait, or not
				a := Arrival{Cost: arg%3 + 1, Priority: priorityOf(arg % levels), Deadline: Never}
				if arg%6 == 5 {
					a.Traits = []Traits{DryRun, OverShare, Long}[arg/6%3]
				}
				if arg%5 == 0 {
					a.Deadline = now + time.Duration(arg)*2*time.Millisecond
				}
				var w *Waiter
				if op%10 != 2 {
					w = &Waiter{Owner: a.Priority}
					everybody = append(everybody, w)
				}
				m.look(g, now)
				d := g.Arrive(now, a, w)
				mayWait := w != nil && m.room > 0 && m.closed == 0 && a.Traits != OverShare
				if g.unbounded() && mayWait && d.Action == Reject && d.Reason != spillway.ReasonQueueFull {
					t.Fatalf("op %d: nothing bounds the wait: %+v", i, d)
				}
				m.arrive(t, a, w, d, g.seq, now)
			case 3, 4: // an end, then grants
				if len(m.running) == 0 {
					break
				}
				k := arg % len(m.running)
				if r := &m.running[k]; op%20 == 4 && r.Cost > 1 && !r.Long {
					g.Shrink(tracked(g, *r).Grant, r.Cost/2)
					r.Cost -= r.Cost / 2
					grantAll(t, g, m, now)
					break
				}
				if op%20 == 14 && !m.running[k].Long {
					g.LengthenWork(now, tracked(g, m.running[k]))
					m.running[k].Long = true
					grantAll(t, g, m, now)
					break
				}
				g.End(now, m.running[k], limit.Outcome(arg%5))
				m.running = slices.Delete(m.running, k, k+1)
				m.ended++
				grantAll(t, g, m, now)
			case 5, 6: // a waiter leaves or has waited too long, or is long gone
				if len(everybody) == 0 {
					break
				}
				w := everybody[arg%len(everybody)]
				want := m.leave(w)
				if op%10 == 5 {
					if g.Leave(now, w) != want {
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
						m.rejected[spillway.ReasonWaitTooLong]++
					}
				}
				grantAll(t, g, m, now)
			case 7: // a dry-run arrival
				a := Arrival{Cost: arg%6 + 1, Priority: priorityOf(arg % levels), Deadline: Never}
				d := g.Force(now, a, true, 0)
				m.offered++
				if (d.Action == Reject) != (m.closed != 0) {
					t.Fatalf("op %d: force: %+v", i, d)
				}
				if m.closed != 0 {
					m.rejected[m.closed]++
				} else {
					m.admit(Grant{Seq: g.seq, Start: now, Cost: a.Cost, Priority: a.Priority})
				}
			case 8: // the next grant finds nobody
				m.absent = true
			case 9:
				if arg%8 != 0 {
					g.Abandoned(spillway.Normal)
					m.offered++
					m.cancelled++
					break
				}
				reason := []spillway.Reason{spillway.ReasonDraining, spillway.ReasonClosed}[arg/8%2]
				g.CloseIntake(reason)
				if m.closed != spillway.ReasonClosed {
					m.closed = reason
				}
				if w := g.Drop(); w != nil {
					m.leave(w)
					m.rejected[m.closed]++
				} else if m.queued() > 0 {
					t.Fatalf("op %d: nobody to drop of %d", i, m.queued())
				}
			}
			compare(t, i, g, m)
		}
	})
}

// grantAll empties the queue as far as it goes, in the twin's order.
func grantAll(t *testing.T, g *Gate, m *twin, now time.Duration) {
	t.Helper()
	for {
		m.look(g, now)
		want := m.turn(g.lowest(now) != nil)
		w, granted := g.Next(now)
		if w == nil {
			if want != nil && m.fits(want.cost) {
				t.Fatal("a wake-up was lost")
			}
			return
		}
		if w != want {
			t.Fatal("it was somebody else's turn")
		}
		if granted && !m.fits(w.cost) && (w.level > 0 || w.cost > 1) { // critical work may overtake
			t.Fatal("granted beyond the limit")
		}
		m.leave(w)
		if !granted {
			if w.deadline == Never || g.unbounded() {
				t.Fatal("dropped for a deadline that it has not")
			}
			m.rejected[spillway.ReasonDeadlineTooClose]++
			continue
		}
		grant := Grant{Seq: g.seq, Start: now, Cost: w.cost, Priority: w.Owner.(spillway.Priority), Long: w.held == 0}
		before := g.Counts()
		if m.absent {
			m.absent = false
			g.RevokeWork(now, tracked(g, grant))
			m.cancelled++
		} else {
			g.Taken(w, now-w.Since())
			m.admit(grant)
		}
		if after := g.Counts(); after.Admitted < before.Admitted || after.Cancelled < before.Cancelled {
			t.Fatalf("a count fell: %+v, then %+v", before, after)
		}
	}
}

func compare(t *testing.T, i int, g *Gate, m *twin) {
	t.Helper()
	c := g.Counts()
	if int(c.Offered) != m.offered || int(c.Admitted) != m.admitted || int(c.Completed) != m.ended ||
		int(c.Cancelled) != m.cancelled || g.InFlight() != m.used() || g.Running() != len(m.running) ||
		g.Queued() != m.queued() || g.Idle() != (len(m.running) == 0 && m.queued() == 0) {
		t.Fatalf("op %d: gate %+v with %d in flight, %d queued; twin %+v", i, c, g.InFlight(), g.Queued(), m)
	}
	if c.Offered != c.Admitted+c.Rejected()+c.Cancelled+uint64(g.Queued()) || c.Admitted != c.Completed+uint64(g.Running()) {
		t.Fatalf("op %d: the ledger does not close: %+v", i, c)
	}
	for _, r := range spillway.Reasons() {
		if int(c.RejectedBy[r]) != m.rejected[r] {
			t.Fatalf("op %d: %d rejected by %v, want %d", i, c.RejectedBy[r], r, m.rejected[r])
		}
	}
	var sum Counts
	for lv := range levels {
		g.sum(&sum, lv)
		p := priorityOf(lv)
		of, used := g.CountsOf(p), 0
		for _, w := range m.running {
			if w.Priority == p && !w.Long {
				used += w.Cost
			}
		}
		if of.Offered != of.Admitted+of.Rejected()+of.Cancelled+uint64(g.QueuedBy(p)) || g.InFlightBy(p) != used {
			t.Fatalf("op %d: the ledger of %v does not close, with %d of %d in flight: %+v", i, p, g.InFlightBy(p), used, of)
		}
	}
	if sum != c || int(c.WouldReject()) < m.would {
		t.Fatalf("op %d: %+v, by level %+v", i, c, sum)
	}
	for lv := range m.waiting {
		if got := g.QueuedBy(priorityOf(lv)); got != len(m.waiting[lv]) {
			t.Fatalf("op %d: %d of level %d wait, want %d", i, got, lv, len(m.waiting[lv]))
		}
	}
}

// FuzzRepeats compares a gate that is asked every time with one whose rejections
// are repeated without asking: every answer and the ledger must be the same.
func FuzzRepeats(f *testing.F) {
	f.Add(uint8(2), uint8(0), []byte{0, 0, 0, 8, 10, 20, 1, 1, 30, 41, 52, 8, 60, 70, 0, 0, 0})
	f.Add(uint8(1), uint8(3), []byte{1, 1, 1, 1, 1, 8, 1, 1, 1, 8, 1, 1, 1, 1, 8, 1, 1, 1, 21, 31, 41, 51})
	f.Fuzz(func(t *testing.T, slots, room uint8, ops []byte) {
		type memo struct {
			until, needs time.Duration
			reason       spillway.Reason
			n            uint64
			ok           bool
		}
		cfg := Config{Law: limit.NewFixed(int(slots)%9 + 1), QueueSize: int(room) % 7, MaxWait: time.Second}
		if slots > 200 {
			cfg.MaxRefused = 0.4
		}
		asked, kept := New(cfg), New(cfg)
		var memos [levels][2]memo
		asks := map[places.Key]uint64{} // repeated rejections by key
		settle := func(forget bool) {
			for lv := range memos {
				for i := range memos[lv] {
					k := &memos[lv][i]
					kept.Repeated(priorityOf(lv), k.reason, k.n)
					k.n, k.ok = 0, k.ok && !forget
				}
			}
			for key, n := range asks {
				kept.RepeatedOf(key, n)
			}
			clear(asks)
		}
		var running []Grant
		now := time.Duration(0)
		repeated := 0
		for i, op := range ops {
			arg := int(op) / 10
			now += time.Duration(op%4) * time.Duration(arg) * time.Millisecond
			if op%10 >= 7 { // an end, then grants
				if len(running) == 0 {
					continue
				}
				settle(true)
				k := arg % len(running)
				for _, g := range []*Gate{asked, kept} {
					g.End(now, running[k], limit.Success)
				}
				running = slices.Delete(running, k, k+1)
				for {
					w, ok := asked.Next(now)
					w2, ok2 := kept.Next(now)
					if (w == nil) != (w2 == nil) || ok != ok2 {
						t.Fatalf("op %d: the queues differ", i)
					}
					if w == nil {
						break
					}
					if ok {
						running = append(running, Grant{Seq: asked.seq, Start: now, Cost: w.cost, Priority: w.Owner.(spillway.Priority)})
					}
				}
				continue
			}
			a := Arrival{Cost: 1, Priority: priorityOf(arg % levels), Deadline: Never}
			if op%10 == 4 {
				a.Cost = 2
			}
			if op%3 == 0 {
				a.Deadline = now + time.Duration(arg*arg)*time.Millisecond
			}
			may := int(op % 2)
			waiter := func() *Waiter {
				if may == 0 {
					return nil
				}
				return &Waiter{Owner: a.Priority}
			}
			d := asked.Arrive(now, a, waiter())
			d.Preempted = nil
			var got Decision
			if k := &memos[priority.Level(a.Priority)][may]; k.ok && a.Cost == 1 && now < k.until && a.Deadline-now >= k.needs {
				k.n++
				asks[Key(now, &a)]++
				got = Decision{Action: Reject, Reason: k.reason}
				repeated++
			} else {
				settle(false)
				got = kept.Arrive(now, a, waiter())
				got.Preempted = nil
				if got.Action == Reject {
					until, needs, ok := kept.Repeats(a, got, may == 1)
					if ok {
						*k = memo{until: until, needs: needs, reason: got.Reason, ok: true}
					}
				} else {
					settle(true)
				}
			}
			if got != d {
				t.Fatalf("op %d at %v: %+v, asked: %+v", i, now, got, d)
			}
			if d.Action == Admit {
				running = append(running, Grant{Seq: asked.seq, Start: now, Cost: a.Cost, Priority: a.Priority})
			}
		}
		settle(true)
		a, k := [...]any{asked.Counts(), *asked.lately, asked.back, withoutPointer(asked.demand)}, [...]any{kept.Counts(), *kept.lately, kept.back, withoutPointer(kept.demand)}
		if a != k {
			t.Fatalf("after %d repeated: %+v; asked %+v", repeated, k, a)
		}
	})
}

// fill makes a gate of one slot that knows how long work takes, with one running.
func fill(t *testing.T, elapsed time.Duration) (g *Gate, now time.Duration, running Grant) {
	t.Helper()
	g = New(Config{Law: limit.NewFixed(1), QueueSize: 1 << 20, MaxWait: time.Hour})
	for range 50 {
		g.Arrive(now, Arrival{Cost: 1, Deadline: Never}, nil)
		start := now
		now += elapsed
		g.End(now, Grant{Seq: g.seq, Start: start, Cost: 1}, limit.Success)
	}
	g.Arrive(now, Arrival{Cost: 1, Deadline: Never}, nil)
	return g, now, Grant{Seq: g.seq, Start: now, Cost: 1}
}

// While more important work keeps coming, the least important work still gets one grant
// in Floor: at most half a percent, and never nothing.
func TestTheLowestPriorityGetsTheFloorAndNoMore(t *testing.T) {
	g := New(Config{Law: limit.NewFixed(1), QueueSize: 1 << 20, MaxWait: time.Hour})
	const grants = 20 * Floor
	for range grants {
		g.Arrive(0, Arrival{Cost: 1, Priority: spillway.Critical, Deadline: Never}, &Waiter{Owner: spillway.Critical})
	}
	for range 100 {
		g.Arrive(0, Arrival{Cost: 1, Priority: spillway.Low, Deadline: Never}, &Waiter{Owner: spillway.Low})
	}
	low, now := 0, time.Duration(0)
	running := Grant{Seq: 1, Cost: 1}
	for range grants {
		now += time.Millisecond
		g.End(now, running, limit.Success)
		w, granted := g.Next(now)
		if !granted {
			t.Fatal("nobody was granted")
		}
		p := w.Owner.(spillway.Priority)
		running = Grant{Seq: g.seq, Start: now, Cost: 1, Priority: p}
		if p == spillway.Low {
			low++
		}
	}
	if low != grants/Floor {
		t.Fatalf("%d of %d grants went to the lowest, want %d", low, grants, grants/Floor)
	}
}

func TestRetryAfterIsTheBacklogOverTheDrainRate(t *testing.T) {
	if got := New(Config{Law: limit.NewFixed(1)}).RetryAfter(0); got != 0 {
		t.Fatalf("advice %v from nothing", got)
	}
	g, now, _ := fill(t, 50*time.Millisecond)
	for range 9 {
		if d := g.Arrive(now, Arrival{Cost: 1, Deadline: Never}, &Waiter{}); d.Action != Wait {
			t.Fatalf("%+v", d)
		}
	}
	if got := g.RetryAfter(spillway.Normal); got < 400*time.Millisecond || got > 600*time.Millisecond {
		t.Errorf("ten ahead at 20 a second: %v, want about 500ms", got)
	}
	if high := g.RetryAfter(spillway.High); high >= g.RetryAfter(spillway.Normal) {
		t.Errorf("who goes before all of them is told %v", high)
	}
	if g.CloseIntake(spillway.ReasonClosed); g.RetryAfter(0) != 0 {
		t.Error("a closed gate tells callers to come back")
	}
}

func TestWorkThatCannotMeetItsDeadlineIsNotStarted(t *testing.T) {
	const took = 100 * time.Millisecond
	g, now, running := fill(t, took)
	if d := g.Arrive(now, Arrival{Cost: 1, Deadline: now + took/2}, &Waiter{}); d.Reason != spillway.ReasonDeadlineTooClose {
		t.Fatalf("half a service time: %+v", d)
	}
	late := &Waiter{}
	if d := g.Arrive(now, Arrival{Cost: 1, Deadline: now + 3*took}, late); d.Action != Wait {
		t.Fatalf("time enough: %+v", d)
	}
	if d := g.Arrive(now, Arrival{Cost: 1, Deadline: now + 3*took/2}, &Waiter{}); d.Reason != spillway.ReasonDeadlineTooClose {
		t.Fatalf("two services ahead and time for one and a half: %+v", d)
	}
	now += 3 * took // slower than predicted: now it is too late
	g.End(now, running, limit.Success)
	if w, granted := g.Next(now); w != late || granted {
		t.Fatal("work was started that its caller will not wait for")
	}
}

func TestNoMoreIsRefusedThanMayBe(t *testing.T) {
	g := New(Config{Law: limit.NewFixed(1), MaxWait: time.Second, MaxRefused: 0.3})
	now := time.Duration(0)
	for range 5000 { // no work ends, so without MaxRefused all but the first would be refused
		now += time.Millisecond
		g.Arrive(now, Arrival{Cost: 1, Deadline: Never}, nil)
	}
	if c := g.Counts(); c.Rejected()*100 > c.Offered*35 || c.Rejected()*100 < c.Offered*25 {
		t.Fatalf("%d of %d refused, 30 %% may be", c.Rejected(), c.Offered)
	}
}

// Refusals that show no lack of capacity once counted for MaxRefused. After many of them the gate
// admitted all other work at once, however few slots there were.
func TestRefusalsThatShowNoShortageDoNotUseUpWhatMayBeRefused(t *testing.T) {
	for want, refuse := range map[spillway.Reason]func(g *Gate, now time.Duration) spillway.Reason{
		spillway.ReasonDeadlineTooClose: func(g *Gate, now time.Duration) spillway.Reason { // with a slot free
			return g.Arrive(now, Arrival{Cost: 1, Deadline: now}, nil).Reason
		},
		spillway.ReasonQuota: func(g *Gate, now time.Duration) spillway.Reason {
			return g.Arrive(now, Arrival{Cost: 2, Deadline: Never, Traits: OverShare}, nil).Reason
		},
		spillway.ReasonBudget: func(g *Gate, now time.Duration) spillway.Reason { // there is no lease
			g.Refused(now, spillway.Normal, spillway.ReasonBudget)
			return spillway.ReasonBudget
		},
	} {
		g := New(Config{Law: limit.NewFixed(2), MaxRefused: 0.2, MaxWait: time.Second})
		now := time.Duration(0)
		g.Arrive(now, Arrival{Cost: 1, Deadline: Never}, nil)
		for range 2000 {
			now += 5 * time.Millisecond
			if got := refuse(g, now); got != want {
				t.Fatalf("refused for %v, want %v", got, want)
			}
		}
		for i, action := range []Action{Admit, Reject, Reject} {
			if d := g.Arrive(now, Arrival{Cost: 1, Deadline: Never}, nil); d.Action != action {
				t.Errorf("%v: arrival %d: %+v, with %d of 2 slots in use", want, i, d, g.InFlight())
			}
		}
	}
}

func TestASignalCapsTheLimitAndNamesItself(t *testing.T) {
	for _, dry := range []bool{false, true} {
		g := New(Config{Law: limit.NewFixed(4), MaxWait: time.Second})
		arrive := func() Decision {
			if dry {
				return g.Force(0, Arrival{Cost: 1, Deadline: Never}, false, 0)
			}
			return g.Arrive(0, Arrival{Cost: 1, Deadline: Never}, nil)
		}
		g.SetBounds(Bounds{Cap: 2, Pressed: spillway.ReasonSignal})
		for i, want := range []spillway.Reason{0, 0, spillway.ReasonSignal} {
			if d := arrive(); d.Reason != want || (d.Action == Admit) != (dry || want == 0) {
				t.Errorf("dry run %v, arrival %d: %+v, want %v", dry, i, d, want)
			}
		}
		g.SetBounds(Bounds{})
		if d := arrive(); d.Action != Admit || d.Reason != 0 || g.Limit() != 4 {
			t.Errorf("dry run %v, still pressed: %+v", dry, d)
		}
	}
}

type told struct {
	limit.Law
	loads []limit.Load
}

func (l *told) Admit(_ time.Duration, load limit.Load) { l.loads = append(l.loads, load) }

// Work that costs more than the limit runs alone. The law once got the cost as the number of
// enforced slots and followed: a limit of 20 became 90 where one piece in
// two hundred cost 1000. Also, one arrival of the largest cost counted as millions of
// times the capacity, and other work was refused for half a minute.
func TestWorkThatCostsMoreThanTheLimitIsAllOfIt(t *testing.T) {
	law := &told{Law: limit.NewFixed(10)}
	g := New(Config{Law: law, QueueSize: 100, MaxWait: time.Second})
	now := time.Duration(0)
	for i := range 200 {
		a := Arrival{Cost: 1, Deadline: Never}
		if i%10 == 9 {
			a.Cost, a.Priority = 1<<31-1, spillway.Critical
		}
		if d := g.Arrive(now, a, nil); d.Action != Admit {
			t.Fatalf("%+v, with all slots free", d)
		}
		start := now
		now += 50 * time.Millisecond
		g.End(now, Grant{Seq: g.seq, Start: start, Cost: a.Cost, Priority: a.Priority, Deadline: Never}, limit.Success)
	}
	for _, l := range law.loads {
		if l.InFlight > 10 || l.Enforced != 10 {
			t.Fatalf("the law is told of %+v", l)
		}
	}
	if d := g.Demand(now); d > 1 {
		t.Errorf("the demand is %v, and there was room for all of it", d)
	}
}

// tracked is work that runs and was not tracked so far.
func tracked(g *Gate, w Grant) *Work {
	w.tally = &g.tallies.first
	t := &Work{Grant: w}
	g.track(t)
	return t
}

// withoutPointer is d without what its gate has measured.
func withoutPointer(d demand) demand {
	d.lately = nil
	return d
}
