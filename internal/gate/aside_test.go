package gate

import (
	"slices"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/priority"
	"github.com/spillway-go/spillway/limit"
)

// piece is a piece of work as the model of FuzzAside sees it.
type piece struct {
	w         Work
	cost      int
	priority  spillway.Priority
	where     whereabouts // nowhere: long
	pausedAt  time.Duration
	away      time.Duration
	waiter    *Waiter // granted and not answered yet
	grantedAt time.Duration
}

// aside is a set of pieces of work, each with its cost and its whereabouts, and every number
// computed anew.
type aside struct {
	g                          *Gate
	now                        time.Duration
	running                    []*piece
	order                      [4][]*piece // pieces by whereabouts, in the order of coming there
	waiting                    []*Waiter
	offered, admitted, ended   int
	cancelled, refused, starts int
	late                       bool // callers answer their grants later
	open                       map[uint64]bool
	wrong                      string // what the law was told wrongly
}

// witness is a law that is told of each start and each end once.
type witness struct {
	limit.Law
	m *aside
}

func (l *witness) Admit(at time.Duration, load limit.Load) {
	l.m.starts++
	l.m.open[uint64(l.m.starts)] = true
	l.Law.Admit(at, load)
}

func (l *witness) Observe(s limit.Sample, load limit.Load) {
	if !l.m.open[s.Seq] {
		l.m.wrong = "an end without a start"
	}
	delete(l.m.open, s.Seq)
	if s.End < s.Start || s.End > l.m.now {
		l.m.wrong = "a time that cannot be"
	}
	l.Law.Observe(s, load)
}

func (m *aside) put(p *piece, to whereabouts) {
	m.order[p.where] = slices.DeleteFunc(m.order[p.where], func(q *piece) bool { return q == p })
	p.where = to
	m.order[to] = append(m.order[to], p)
}

// start follows an admission or a grant.
func (m *aside) start(cost int, pr spillway.Priority, long bool, w *Waiter) {
	p := &piece{cost: cost, priority: pr, waiter: w, grantedAt: m.now}
	p.w.Owner = p
	m.g.Track(&p.w)
	m.running = append(m.running, p)
	if long {
		m.order[nowhere] = append(m.order[nowhere], p)
	} else {
		m.put(p, isHolding)
	}
}

func (m *aside) end(p *piece) {
	m.order[p.where] = slices.DeleteFunc(m.order[p.where], func(q *piece) bool { return q == p })
	m.running = slices.DeleteFunc(m.running, func(q *piece) bool { return q == p })
}

// answer is the answer of the caller of granted work: the caller takes the work, or has left.
func (m *aside) answer(p *piece, takes bool) {
	w := p.waiter
	p.waiter = nil
	if takes {
		m.g.Taken(w, p.grantedAt-w.Since())
		m.admitted++
		return
	}
	m.g.RevokeWork(m.now, &p.w)
	m.end(p)
	m.cancelled++
}

func (m *aside) used() (n int) {
	for _, p := range m.order[isHolding] {
		n += p.cost
	}
	return n
}

func (m *aside) fits(cost int) bool { return m.used() == 0 || m.used()+cost <= m.g.Limit() }

// grant lets waiters start as far as they may.
func (m *aside) grant(t *testing.T) {
	t.Helper()
	for {
		w, granted := m.g.Next(m.now)
		if w == nil {
			return
		}
		i := slices.Index(m.waiting, w)
		if i < 0 {
			t.Fatal("the gate granted what does not wait")
		}
		m.waiting = slices.Delete(m.waiting, i, i+1)
		if !granted {
			m.refused++
			continue
		}
		if !m.fits(w.cost) && (w.level > 0 || w.cost > 1) { // critical work may overtake
			t.Fatalf("granted %d slots beside %d of %d", w.cost, m.used(), m.g.Limit())
		}
		m.start(w.cost, priorityOf(w.level), w.held == 0, w)
		if !m.late {
			m.answer(m.running[len(m.running)-1], true)
		}
	}
}

func (m *aside) arrive(t *testing.T, a Arrival, mayWait bool) Action {
	t.Helper()
	var w *Waiter
	if mayWait {
		w = &Waiter{}
	}
	free := m.fits(a.Cost)
	d := m.g.Arrive(m.now, a, w)
	m.offered++
	if d.Preempted != nil {
		m.waiting = slices.DeleteFunc(m.waiting, func(q *Waiter) bool { return q == d.Preempted })
		m.refused++
	}
	switch d.Action {
	case Admit:
		if !free {
			t.Fatalf("admitted %d slots beside %d of %d", a.Cost, m.used(), m.g.Limit())
		}
		m.admitted++
		m.start(a.Cost, a.Priority, a.Traits&Long != 0, nil)
	case Wait:
		m.waiting = append(m.waiting, w)
	case Reject:
		m.refused++
	}
	return d.Action
}

// relieve lets the gate judge and begin trials, checks what the gate did, and follows.
func (m *aside) relieve(t *testing.T) {
	t.Helper()
	full, rule, parked := m.used() >= m.g.Limit(), m.g.Rule(), slices.Clone(m.order[isParked])
	free := m.g.Relieve(m.now)
	back, gone := 0, 0
	for _, p := range parked { // work takes its slots again in the order in which it was parked
		if p.w.where == isHolding {
			m.put(p, isHolding)
			back++
		}
	}
	for _, p := range slices.Clone(m.order[isHolding]) { // the oldest goes first
		if p.w.where == isParked {
			if m.now-p.w.taken < overdueLeast || rule > LowRules || !full && back == 0 {
				t.Fatalf("parked after %v, with rule %d and slots free %v", m.now-p.w.taken, rule, !full)
			}
			m.put(p, isParked)
			gone++
		}
	}
	if free && (gone == 0 || m.used() >= m.g.Limit()) || !free && gone > 0 && m.used() < m.g.Limit() {
		t.Fatalf("free %v, but %d were parked, and %d of %d slots are in use", free, gone, m.used(), m.g.Limit())
	}
}

// compare compares the gate with the model.
func (m *aside) compare(t *testing.T, op int) {
	t.Helper()
	g := m.g
	if m.wrong != "" {
		t.Fatalf("op %d: the law was told of %s", op, m.wrong)
	}
	for where := isHolding; where <= isParked; where++ {
		l := g.line(where)
		w, last := l.first, (*Work)(nil)
		for i, p := range m.order[where] {
			if w != &p.w || w.previous != last || w.where != where || w.Cost != p.cost {
				t.Fatalf("op %d: piece %d of list %d is not what it was", op, i, where)
			}
			last, w = w, w.next
		}
		if w != nil || l.last != last || l.n != len(m.order[where]) {
			t.Fatalf("op %d: list %d has %d pieces, want %d", op, where, l.n, len(m.order[where]))
		}
	}
	var present, parked [limit.Classes]int32
	var used, granted, waiting [levels]int
	grants := 0
	for _, p := range m.running {
		lv := priority.Level(p.priority)
		if p.where != nowhere {
			present[p.w.Kind]++
		}
		if p.where == isHolding {
			used[lv] += p.cost
		}
		if p.where == isParked {
			parked[p.w.Kind]++
		}
		if p.waiter != nil {
			granted[lv]++
			grants++
		}
	}
	for _, w := range m.waiting {
		present[w.kind]++
		waiting[w.level]++
	}
	for i := range g.service.kinds.list {
		if k := &g.service.kinds.list[i]; k.present != present[i] || k.parked.now != parked[i] {
			t.Fatalf("op %d: of kind %d %d are present and %d parked, want %d and %d", op, i, k.present, k.parked.now, present[i], parked[i])
		}
	}
	if g.InFlight() != m.used() || g.running != len(m.running) || g.Running() != len(m.running)-grants || g.Long() != len(m.order[nowhere]) ||
		g.Queued() != len(m.waiting)+grants || g.Holding() != len(m.order[isHolding]) || g.Idle() != (len(m.running)+len(m.waiting) == 0) {
		t.Fatalf("op %d: %d slots in use, %d run, %d long, %d wait, want %d, %d, %d, %d", op,
			g.InFlight(), g.running, g.Long(), g.Queued(), m.used(), len(m.running), len(m.order[nowhere]), len(m.waiting)+grants)
	}
	for lv := range levels {
		p := priorityOf(lv)
		c := g.CountsOf(p)
		if g.InFlightBy(p) != used[lv] || g.QueuedBy(p) != waiting[lv]+granted[lv] ||
			c.Offered != c.Admitted+c.Rejected()+c.Cancelled+uint64(g.QueuedBy(p)) {
			t.Fatalf("op %d: %v has %d slots in use and %d waiters, want %d and %d: %+v", op, p,
				g.InFlightBy(p), g.QueuedBy(p), used[lv], waiting[lv]+granted[lv], c)
		}
	}
	c := g.Counts()
	if int(c.Offered) != m.offered || int(c.Admitted) != m.admitted || int(c.Completed) != m.ended ||
		int(c.Cancelled) != m.cancelled || int(c.Rejected()) != m.refused || c.Admitted != c.Completed+uint64(g.Running()) {
		t.Fatalf("op %d: %+v, want %d offered, %d admitted, %d ended, %d cancelled, %d refused",
			op, c, m.offered, m.admitted, m.ended, m.cancelled, m.refused)
	}
	if len(m.open) != len(m.order[isHolding]) {
		t.Fatalf("op %d: to the law %d run, want %d", op, len(m.open), len(m.order[isHolding]))
	}
}

// at returns one of the pieces that run and whose callers have them, or nil.
func (m *aside) at(n int) *piece {
	taken := slices.DeleteFunc(slices.Clone(m.running), func(p *piece) bool { return p.waiter != nil })
	if len(taken) == 0 {
		return nil
	}
	return taken[n%len(taken)]
}

// finish ends work with what the owner tells the gate.
func (m *aside) finish(p *piece, o limit.Outcome) {
	p.w.Away = min(p.away, m.now-p.w.Start)
	m.g.EndWork(m.now, &p.w, o)
	m.end(p)
	m.ended++
}

// An upper bound that rules, such as a lease, holds without exception. A lower bound is no reason to
// stop others for work that hangs.
func TestNothingIsParkedWhileAnUpperBoundRules(t *testing.T) {
	for name, c := range map[string]struct {
		bounds Bounds
		rule   Rule
		parks  bool
	}{
		"nothing":      {Bounds{}, LawRules, true},
		"a low bound":  {Bounds{Low: 9}, LowRules, true},
		"a high bound": {Bounds{High: 4}, HighRules, false},
		"a lease":      {Bounds{Leased: 4}, LeaseRules, false},
		"a slow start": {Bounds{Share: 0.5}, SlowStartRules, false},
		"a signal":     {Bounds{Cap: 4, Pressed: spillway.ReasonMemory}, CapRules, false},
	} {
		g := New(Config{Law: limit.NewFixed(8), QueueSize: 6, MaxWait: 10 * time.Second, MaxAside: 100, Parks: true})
		g.SetBounds(c.bounds)
		all := make([]Work, g.Limit())
		for i := range all {
			if d := g.Arrive(0, Arrival{Cost: 1, Deadline: Never}, nil); d.Action != Admit {
				t.Fatalf("%s: %+v", name, d)
			}
			g.Track(&all[i])
		}
		if free := g.Relieve(overdueAnyway - 1); free {
			t.Errorf("%s: parked before it was overdue", name)
		}
		free := g.Relieve(time.Minute)
		if _, parked := g.Aside(); g.Rule() != c.rule || free != c.parks || (parked > 0) != c.parks {
			t.Errorf("%s rules as %d: %d parked, slots free %v", name, g.Rule(), parked, free)
		}
	}
}

// FuzzAside drives a gate and a set of pieces of work through the same life, and compares them
// after every step.
func FuzzAside(f *testing.F) {
	pass := func(tenths int) byte { return byte(16*tenths + 7) }
	f.Add(uint8(3), []byte{0, 16, 0, 0, 4, 7, 5, 3, 3, 3})
	f.Add(uint8(2), []byte{15, 0, 0, 0, 0, pass(15), 6, pass(15), 6, 3, 3, 6, 15, 6, 15, pass(9), 6, 9, 8, 3})
	f.Add(uint8(1), []byte{15, 0, pass(15), 1, 6, pass(3), pass(15), pass(15), 6, 0, 6, pass(15), pass(15), 6, 3, 3, 3})
	f.Add(uint8(4), []byte{15, 32, 32, 32, 1, 6, pass(11), 6, 9, 25, 4, 20, 36, 6, 8, 24, 5, 21, 3, 19, 35, 14, 3, 3})
	// Regression: when the caller of granted work that was parked meanwhile had left, its slots came back twice.
	f.Add(uint8(0), []byte{15, 0, 0, 0, 0, 12, 3, pass(15), 6, 13, 3, 3, 3})
	// Work is parked, the others hang too, and the work takes its slots again, or was made long.
	f.Add(uint8(7), []byte{15, 0, 0, 0, 0, 0, 0, 0, 0, pass(12), 6, 48, pass(15), pass(15), 6, pass(3), 6, 10, 6, 3, 3})
	f.Add(uint8(7), []byte{15, 0, 0, 0, 0, 0, 0, 0, 0, pass(12), 6, 8, 48, pass(15), pass(15), 6, 3, 14, 3, 30, 3})
	// Work that is long by nature is parked, twice the others are slow, and the work takes its slots again.
	f.Add(uint8(7), []byte{15, 0, pass(15), 3, 0, 0, 0, 0, 0, 0, 0, 0, pass(12), 6, 48, pass(15), pass(15), 6, 3, 48, pass(15), pass(15), 6, 3, 3})
	f.Fuzz(func(t *testing.T, slots uint8, ops []byte) {
		if len(ops) > 300 {
			return
		}
		m := &aside{open: map[uint64]bool{}}
		most := []int{0, 2, 100, 100}[slots/8%4]
		if slots < 8 {
			most = 100
		}
		m.g = New(Config{Law: &witness{limit.NewFixed(int(slots)%8 + 1), m}, QueueSize: 6, MaxWait: 10 * time.Second, MaxAside: most, Parks: true})
		g := m.g
		for i, op := range ops {
			m.now += time.Millisecond
			arg := int(op / 16)
			switch op % 16 {
			case 0, 1, 2: // an arrival that may wait, or not
				a := Arrival{Cost: arg%3 + 1, Priority: priorityOf(arg % levels), Deadline: Never, Kind: g.KindOf([]string{"", "report"}[arg%2])}
				if arg == 15 {
					a.Traits = Long
				}
				if arg > 12 {
					a.Deadline = m.now + time.Second
				}
				m.arrive(t, a, op%16 != 2)
			case 3: // an end
				if p := m.at(arg); p != nil {
					m.finish(p, limit.Outcome(arg%6))
				}
				m.grant(t)
			case 4: // a pause takes the slots
				if p := m.at(arg); p != nil && p.where == isHolding && g.MayPause() {
					g.Pause(m.now, &p.w)
					p.pausedAt = m.now
					m.put(p, isPaused)
				}
				m.grant(t)
			case 5: // the end of a pause
				if p := m.at(arg); p != nil && (p.where == isPaused || p.where == nowhere) {
					g.Back(m.now, &p.w)
					if p.where == isPaused {
						p.away += m.now - p.pausedAt
						m.put(p, isHolding)
					}
				}
			case 6:
				m.relieve(t)
				m.grant(t)
			case 7:
				m.now += time.Duration(arg) * 100 * time.Millisecond
			case 8:
				if p := m.at(arg); p != nil && p.where != nowhere {
					g.LengthenWork(m.now, &p.w)
					m.put(p, nowhere)
				}
				m.grant(t)
			case 9:
				if p := m.at(arg); p != nil && p.where == isHolding && p.cost > 1 {
					g.Shrink(p.w.Grant, 1)
					p.w.Cost--
					p.cost--
				}
				m.grant(t)
			case 10:
				b := Bounds{Low: arg % 4, High: max(arg/2-1, 0)}
				if arg%5 == 4 {
					b.Leased = arg % 3
				}
				g.SetBounds(b)
				m.grant(t)
			case 11: // a caller leaves
				if len(m.waiting) > 0 {
					k := arg % len(m.waiting)
					if !g.Leave(m.now, m.waiting[k]) {
						t.Fatalf("op %d: a waiter cannot leave", i)
					}
					m.waiting = slices.Delete(m.waiting, k, k+1)
					m.cancelled++
				}
				m.grant(t)
			case 12: // from now on callers answer later, or at once again
				m.late = !m.late
			case 13: // a late answer
				if k := slices.IndexFunc(m.running, func(p *piece) bool { return p.waiter != nil }); k >= 0 {
					m.answer(m.running[k], arg%2 == 1)
				}
				m.grant(t)
			case 14:
				if arg < 2 {
					g.CloseIntake([]spillway.Reason{spillway.ReasonDraining, spillway.ReasonClosed}[arg])
				}
				for g.ClosedFor() == spillway.ReasonClosed {
					w := g.Drop()
					if w == nil {
						break
					}
					m.waiting = slices.DeleteFunc(m.waiting, func(q *Waiter) bool { return q == w })
					m.refused++
				}
				m.grant(t)
			case 15: // quick work shows what is usual
				for range 6 {
					if m.arrive(t, Arrival{Cost: 1, Deadline: Never}, false) == Admit {
						m.now += 5 * time.Millisecond
						m.finish(m.running[len(m.running)-1], limit.Success)
					}
				}
				m.grant(t)
			}
			m.compare(t, i)
			if paused, parked := g.Aside(); paused+parked > most {
				t.Fatalf("op %d: %d pieces paused and %d parked, of at most %d", i, paused, parked, most)
			}
		}
		for _, w := range m.waiting {
			g.Leave(m.now, w)
			m.cancelled++
		}
		m.waiting = nil
		for len(m.running) > 0 {
			if p := m.running[0]; p.waiter != nil {
				m.answer(p, len(m.running)%2 == 0)
			} else {
				m.finish(p, limit.Success)
			}
			m.compare(t, len(ops))
		}
		if !g.Idle() || g.InFlight() != 0 {
			t.Fatalf("%d slots are in use at the end", g.InFlight())
		}
	})
}
