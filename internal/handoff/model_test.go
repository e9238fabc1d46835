package handoff

import (
	"fmt"
	"testing"
)

// The model runs the code of this package, not a description of the code: actors take turns at its
// operations. An operation under the lock is one step, and each signal after it is another step.
// There is one goroutine; an actor whose channel is empty is not enabled.
//
// Every schedule is explored. A state is the positions of the actors and the state of the core.
// From each new state, each enabled actor takes a step. A state is reached again by running its
// schedule from the start.

// actor is a submitter, a worker, or something else with a few steps.
type actor interface {
	enabled() bool
	step(*world)
	at() []byte // position of the actor
}

// world is one run.
type world struct {
	q      Queue[int]
	actors []actor
	now    int                    // the actor that takes a step
	unsent map[int][]signals[int] // by actor, which must send them before it goes on
	jobs   []fate
	out    int             // jobs dropped or removed, and not finished
	ended  <-chan struct{} // what Drained returned
	err    error
}

func (w *world) enabled(i int) bool { return len(w.unsent[i]) > 0 || w.actors[i].enabled() }

func (w *world) step(i int) {
	w.now = i
	if all := w.unsent[i]; len(all) > 0 {
		w.unsent[i] = all[1:]
		w.q.sendAll(all[0])
		return
	}
	w.actors[i].step(w)
}

// later queues signals for sending one by one.
func (w *world) later(s signals[int]) {
	all := w.unsent[w.now]
	if s.worker != nil {
		all = append(all, signals[int]{worker: s.worker})
	}
	for x := s.notified; x != nil; {
		next := x.next
		x.next = nil
		all = append(all, signals[int]{notified: x})
		x = next
	}
	for _, x := range s.exits {
		all = append(all, signals[int]{exits: []*Worker{x}})
	}
	w.unsent[w.now] = all
}

// fate is what became of a job.
type fate struct{ accepted, refused, left, ran, taken int }

func (w *world) failf(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

// submitter offers one job after the other.
type submitter struct {
	jobs    []int
	level   int
	waits   bool // for room
	patient bool
	removes bool // takes its job out again, if it is still queued
	pc      string
	w       *Waiter[int]
	ticket  Ticket
}

func (s *submitter) at() []byte {
	at := []byte{s.pc[0], s.pc[len(s.pc)-1], byte(len(s.jobs))}
	if s.w != nil {
		at = append(at, byte(s.w.state), byte(s.w.place), bit(s.w.called), byte(len(s.w.ready)))
	}
	return at
}

func (s *submitter) enabled() bool {
	return s.pc != "done" && (s.pc != "waits" && s.pc != "left" || len(s.w.ready) > 0)
}

func (s *submitter) step(w *world) {
	j := s.jobs[0]
	switch s.pc {
	case "looks": // without the lock, as a refusal does
		s.pc = "offers"
		if !s.waits && w.q.Full(s.level) {
			if w.q.core.room(s.level) && !w.q.core.closed {
				w.failf("job %d was refused with a load beside a free place", j)
			}
			w.jobs[j].refused++
			s.next()
		}
	case "offers":
		state, t := w.q.Offer(&j, s.level)
		s.ticket = t
		switch {
		case state == Accepted:
			s.accepted(w)
		case state == Full && s.waits:
			s.pc = "asks"
		default:
			w.jobs[j].refused++
			s.next()
		}
	case "asks":
		s.w = NewWaiter[int]()
		switch w.q.Wait(s.w, j, s.level, s.patient) {
		case Accepted:
			s.ticket = s.w.Ticket()
			s.accepted(w)
		case Waiting:
			s.pc = "waits"
		case Closed:
			w.jobs[j].refused++
			s.next()
		}
	case "waits":
		<-s.w.ready
		s.pc = "told"
	case "told": // the signal and the rest of EndWait are separate steps
		if s.w.called {
			w.q.relay(s.w)
		}
		s.end(w, s.w.state)
	case "removes":
		if w.q.Remove(s.ticket) {
			w.jobs[j].left++
			w.out++
			s.pc = "finishes"
		} else {
			s.next()
		}
	case "finishes":
		w.out--
		w.q.Finish(1)
		s.next()
	case "left":
		<-s.w.ready
		s.pc = "told"
	}
}

func (s *submitter) end(w *world, v State) {
	switch v {
	case Accepted:
		s.ticket = s.w.Ticket()
		s.accepted(w)
	case Closed:
		w.jobs[s.jobs[0]].refused++
		s.next()
	case Left:
		w.jobs[s.jobs[0]].left++
		s.next()
	default:
		w.failf("job %d: verdict %d after a wait", s.jobs[0], v)
	}
}

func (s *submitter) accepted(w *world) {
	w.jobs[s.jobs[0]].accepted++
	if s.removes {
		s.pc = "removes"
		return
	}
	s.next()
}

func (s *submitter) next() {
	s.w = nil
	if s.jobs = s.jobs[1:]; len(s.jobs) == 0 {
		s.pc = "done"
	} else {
		s.pc = "looks"
	}
}

// canceller ends the wait of a submitter once.
type canceller struct {
	of   *submitter
	done bool
}

func (c *canceller) at() []byte    { return []byte{bit(c.done)} }
func (c *canceller) enabled() bool { return !c.done && c.of.pc == "waits" }
func (c *canceller) step(w *world) {
	c.done = true
	if w.q.leave(c.of.w, false) {
		c.of.end(w, c.of.w.state)
	} else {
		c.of.pc = "left" // its signal is on its way
	}
}

// worker is a goroutine of the pool's.
type worker struct {
	w   *Worker
	pc  string
	job int
}

func (k *worker) at() []byte {
	return []byte{k.pc[0], byte(k.job), bit(k.w.busy), bit(k.w.exit), byte(len(k.w.wake))}
}
func (k *worker) enabled() bool { return k.pc != "gone" && (k.pc != "sleeps" || len(k.w.wake) > 0) }
func (k *worker) step(w *world) {
	switch k.pc {
	case "takes":
		k.job = -1
		if _, ok := w.q.Take(k.w, Ran, &k.job); ok {
			if c := &w.q.core; c.active > c.limit {
				w.failf("a worker took job %d as the %d. of %d", k.job, c.active, c.limit)
			}
			w.jobs[k.job].taken++
			k.pc = "runs"
		} else if k.pc = "sleeps"; k.w.gone {
			k.pc = "gone"
		}
	case "runs":
		w.jobs[k.job].ran++
		k.pc = "takes"
	case "sleeps":
		<-k.w.wake
		if k.pc = "takes"; k.w.exit {
			k.pc = "gone"
		}
	}
}

// once runs its functions in order, each once, at any time.
type once struct {
	name string
	do   []func(*world)
}

func (o *once) at() []byte    { return []byte{byte(len(o.do))} }
func (o *once) enabled() bool { return len(o.do) > 0 }
func (o *once) step(w *world) {
	do := o.do[0]
	o.do = o.do[1:]
	do(w)
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// key is the state of a run: everything that decides which steps may follow.
func (w *world) key() string {
	c := &w.q.core
	b := []byte{byte(c.limit), bit(c.closed), bit(c.calling), bit(c.notifying), byte(c.active), byte(c.out), byte(c.full), byte(w.q.full.Load())}
	for lv := range Levels {
		r := &c.queue[lv]
		for pos := r.head; pos < r.tail; pos++ {
			b = append(b, byte(r.at(pos).value), bit(r.at(pos).hole))
		}
		b = append(b, 255)
		for x := c.waiting[lv].head; x != nil; x = x.next {
			b = append(b, byte(x.value))
		}
		b = append(b, 255)
	}
	for x := c.late.head; x != nil; x = x.next {
		b = append(b, byte(x.value))
	}
	b = append(b, 255)
	number := map[*Worker]byte{}
	for i, a := range w.actors {
		if k, ok := a.(*worker); ok {
			number[k.w] = byte(i)
		}
		b = append(append(b, a.at()...), 255)
	}
	for _, x := range c.parked {
		b = append(b, number[x])
	}
	for i := range w.actors {
		b = append(b, 255)
		for _, s := range w.unsent[i] {
			switch {
			case s.worker != nil:
				b = append(b, 1, number[s.worker]) // 0: not started yet
			case s.notified != nil:
				b = append(b, 2, byte(s.notified.value))
			default:
				b = append(b, 3, number[s.exits[0]])
			}
		}
	}
	for _, f := range w.jobs {
		b = append(b, byte(f.accepted|f.refused<<1|f.left<<2|f.ran<<3|f.taken<<4))
	}
	return string(b)
}

// check fails unless the state obeys the rules of the protocol. They must hold after each step,
// because the lock is then free.
func (w *world) check() {
	c := &w.q.core
	for lv := range Levels {
		if c.waiting[lv].n > 0 && c.room(lv) {
			w.failf("rule 1: a submitter waits at level %d beside a free place", lv)
		}
		if c.full&(1<<lv) != 0 && c.room(lv) && !c.closed {
			w.failf("level %d is marked as full and has room", lv)
		}
	}
	if c.full != w.q.full.Load() {
		w.failf("the mark is %b, and is said to be %b", c.full, w.q.full.Load())
	}
	if c.queued > 0 && c.active < c.limit && !c.calling {
		w.failf("rule 2: %d jobs are queued, %d of %d workers are busy and none is called", c.queued, c.active, c.limit)
	}
	if c.late.n > 0 && c.queued <= c.low && !c.notifying {
		w.failf("rule 4: a submitter is late, and none is called")
	}
	if c.closed && (c.nWaiting > 0 || c.late.n > 0 || len(c.parked) > 0) {
		w.failf("rule 5: %d wait, %d are late and %d are parked after the close", c.nWaiting, c.late.n, len(c.parked))
	}
	queued, busy, taken, calling, called := 0, 0, 0, 0, 0
	for lv := range Levels {
		queued += c.queue[lv].len()
	}
	for _, a := range w.actors {
		if k, ok := a.(*worker); ok {
			if k.w.busy {
				busy++
			}
			if !k.w.busy && !k.w.exit && k.enabled() {
				calling++
			}
		}
		if s, ok := a.(*submitter); ok && s.w != nil && s.w.called {
			called++
		}
	}
	for _, unsent := range w.unsent {
		for _, s := range unsent {
			if s.worker != nil {
				calling++
			}
		}
	}
	for j, f := range w.jobs {
		if f.taken > 1 || f.ran > 1 || f.left > 1 || f.ran+f.left > 1 && f.taken > 0 || f.accepted+f.refused > 1 {
			w.failf("rule 3: job %d: %+v", j, f)
		}
		taken += f.taken - f.ran
	}
	accepted, n := uint64(0), c.ledger()
	for _, k := range n.Accepted {
		accepted += k
	}
	if accepted != n.Ended+n.Void+n.Removed+n.Dropped+uint64(c.queued+c.active) {
		w.failf("rule 3: the ledger does not close: %+v, %d queued, %d active", n, c.queued, c.active)
	}
	if queued != c.queued || busy != c.active || taken > busy {
		w.failf("rule 3: %d queued and %d busy with %d, counted as %d and %d", queued, busy, taken, c.queued, c.active)
	}
	if calling > 1 || (calling == 1) != c.calling {
		w.failf("%d workers are on their way; one is: %v", calling, c.calling)
	}
	if called > 1 || (called == 1) != c.notifying {
		w.failf("%d late submitters are on their way; one is: %v", called, c.notifying)
	}
	select {
	case <-w.ended:
		if c.queued+c.active+w.out > 0 || !c.closed {
			w.failf("drained with %d queued, %d active and %d to be finished", c.queued, c.active, w.out)
		}
	default:
	}
	if most := c.size + max(c.limit, c.active); c.queued > 0 && c.queued+c.active > most && !w.shrunk() {
		w.failf("%d jobs are queued and %d active, with room for %d", c.queued, c.active, most)
	}
}

// shrunk reports whether the limit was lowered. More jobs may then be queued than
// would be accepted.
func (w *world) shrunk() bool {
	for _, a := range w.actors {
		if o, ok := a.(*once); ok && o.name == "shrinks" && len(o.do) == 0 {
			return true
		}
	}
	return false
}

// end checks a state in which no actor can take a step.
func (w *world) end() {
	for _, a := range w.actors {
		switch a := a.(type) {
		case *submitter:
			if a.pc != "done" {
				w.failf("a submitter is left where it %s", a.pc)
			}
		case *worker:
			if a.pc != "gone" && a.pc != "sleeps" {
				w.failf("a worker is left where it %s", a.pc)
			}
			if a.pc == "sleeps" && w.q.core.closed {
				w.failf("a worker sleeps after the close")
			}
		}
	}
	for j, f := range w.jobs {
		if f.accepted+f.refused+f.left == 0 || f.accepted == 1 && f.ran+f.left != 1 || f.refused == 1 && f.ran+f.taken > 0 {
			w.failf("job %d is lost: %+v", j, f)
		}
	}
	if c := &w.q.core; c.queued > 0 || c.active > 0 || c.out > 0 || c.closed && w.q.drained != nil {
		w.failf("at rest: %d queued, %d active, %d out, drained %v", c.queued, c.active, c.out, w.q.drained == nil)
	}
}

// scene returns a world in its first state.
type scene func() *world

// newWorld returns a world with at most limit workers, a queue of the given size, and the actors.
func newWorld(size, limit, jobs int, actors ...actor) *world {
	w := &world{actors: actors, jobs: make([]fate, jobs), unsent: map[int][]signals[int]{}}
	w.q.Init(size, limit, func(place *Worker) {
		w.actors = append(w.actors, &worker{w: place, pc: "takes"})
	})
	w.q.send = w.later
	for _, a := range actors {
		if s, ok := a.(*submitter); ok {
			s.pc = "looks"
		}
	}
	return w
}

// explore runs all schedules of a scene, and returns the number of its states.
func explore(t *testing.T, name string, s scene) int {
	t.Helper()
	run := func(schedule []byte) *world {
		w := s()
		for _, i := range schedule {
			w.step(int(i))
		}
		return w
	}
	seen := map[string]bool{}
	for open := [][]byte{nil}; len(open) > 0; {
		schedule := open[len(open)-1]
		open = open[:len(open)-1]
		w := run(schedule)
		if w.check(); w.err == nil {
			if k := w.key(); seen[k] {
				continue
			} else {
				seen[k] = true
			}
		}
		steps := 0
		for i := range w.actors {
			if w.enabled(i) {
				steps++
				open = append(open, append(schedule[:len(schedule):len(schedule)], byte(i)))
			}
		}
		if steps == 0 {
			w.end()
		}
		if w.err != nil {
			t.Fatalf("%s: %v, after the schedule %v", name, w.err, schedule)
		}
	}
	return len(seen)
}

// drain calls Close, and later Drop and Finish.
func drain(drop bool) *once {
	var n int
	o := &once{name: "drains", do: []func(*world){func(w *world) { w.ended = w.q.Drained(); w.q.Close() }}}
	if drop {
		o.do = append(o.do, func(w *world) {
			all := w.q.Drop()
			for _, j := range all {
				w.jobs[j].left++
			}
			n = len(all)
			w.out += n
		}, func(w *world) { w.out -= n; w.q.Finish(n) })
	}
	return o
}

func resize(name string, to int) *once {
	return &once{name: name, do: []func(*world){func(w *world) { w.q.Resize(to) }}}
}

// callers take their jobs out again, and a submitter waits for their places.
func callers() *world {
	return newWorld(1, 1, 4,
		&submitter{jobs: []int{0, 1}, level: 1, waits: true, removes: true},
		&submitter{jobs: []int{2}, level: 0, waits: true},
		&submitter{jobs: []int{3}, level: 1, waits: true}, drain(true))
}

// tries has submitters that do not wait, and a second worker after a resize.
func tries(a, b int) *world {
	return newWorld(1, 1, 4, &submitter{jobs: []int{0, 1}, level: a}, &submitter{jobs: []int{2, 3}, level: b},
		resize("grows", 2), drain(false))
}

func TestAllSchedules(t *testing.T) {
	two := func(size int, mayBeLate bool, low, jobs int, others ...func(a, b *submitter) actor) scene {
		return func() *world {
			a := &submitter{jobs: []int{0, 1}, level: 1, waits: true, patient: mayBeLate}
			b := &submitter{jobs: []int{2, 3}[:jobs-2], level: 2, waits: true, patient: mayBeLate}
			all := []actor{a, b}
			for _, o := range others {
				all = append(all, o(a, b))
			}
			w := newWorld(size, 2, jobs, all...)
			if mayBeLate {
				w.q.SetLow(low)
			}
			return w
		}
	}
	cancel := func(a, _ *submitter) actor { return &canceller{of: a} }
	other := func(o func() *once) func(a, b *submitter) actor { return func(a, b *submitter) actor { return o() } }
	shrink := other(func() *once { return resize("shrinks", 1) })
	grow := other(func() *once { return resize("grows", 3) })
	close := other(func() *once { return drain(false) })
	closeAndDrop := other(func() *once { return drain(true) })
	scenes := map[string]scene{
		"no queue":                two(0, false, 0, 4, cancel, shrink),
		"no queue, drained":       two(0, false, 0, 3, cancel, closeAndDrop),
		"a place":                 two(1, false, 0, 4, cancel, closeAndDrop),
		"a place, fewer workers":  two(1, false, 0, 3, cancel, shrink, close),
		"a place, more workers":   two(1, false, 0, 3, grow, close),
		"told late":               two(1, true, 0, 4, cancel, close),
		"told late, two places":   two(2, true, 1, 4, cancel, shrink),
		"callers leave, others":   callers,
		"refused, with one level": func() *world { return tries(1, 1) },
		"refused, with levels":    func() *world { return tries(0, 3) },
	}
	for name, s := range scenes {
		if raceEnabled && name != "told late, two places" && name != "a place, more workers" {
			continue // the model has one goroutine
		}
		t.Logf("%s: %d states", name, explore(t, name, s))
	}
}
