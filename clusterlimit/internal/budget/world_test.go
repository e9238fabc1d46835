package budget

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// The world of the simulation has a store with compare and set behind a network that delays and
// loses messages. Its replicas have their own clocks, and are cut off, paused, killed and
// restarted. Every attempt follows the steps of a real attempt.

const (
	simStep  = 5 * time.Millisecond
	simTTL   = 2 * time.Second
	simEvery = simTTL / 6
	simLimit = simTTL / 3 // of an attempt
	total    = 40         // of most worlds
)

type simValue struct {
	State
	revision int
}

type simStore struct {
	values map[string]simValue // by group, and the root
	away   bool
}

const simRoot = "root"

type simNode struct {
	*Holder
	w       *world
	id      string
	speed   float64 // of the replica's clock
	offset  time.Duration
	demand  int           // how much work the replica would run
	long    time.Duration // maximum duration of work
	work    []time.Duration
	told    Bound // the limiter's latest bound
	tick    time.Duration
	cut     bool
	paused  time.Duration // the end of the pause
	attempt int
	busy    bool
	lost    bool // the lease has been over since the work was last within the bound
	most    int  // the amount at the loss of the lease
	gone    bool
	had     bool // has had a usable amount since the calm
	group   string
	full    map[string]bool
	urgent  bool               // the attempt is the one after a visit
	orphans map[string]*Holder // as of Member
}

type event struct {
	at time.Duration
	do func()
}

type world struct {
	t      *testing.T
	r      *rand.Rand
	now    time.Duration
	store  simStore
	nodes  []*simNode
	events []event
	total  int
	crowd  int // replicas at a time
	alone  int // leases of the single value
	most   int // members of a group
	keep   bool
	calm   bool
	made   int
	worst  int // overshoot
}

func (n *simNode) clock() time.Duration {
	return n.offset + time.Duration(float64(n.w.now)*n.speed)
}

func (w *world) join() {
	w.made++
	n := &simNode{
		w: w, id: fmt.Sprintf("%04d", w.r.IntN(10000)) + fmt.Sprint(w.made), speed: .9 + .2*w.r.Float64(),
		offset: time.Duration(w.r.Int64N(int64(time.Hour))), demand: w.r.IntN(40), long: time.Duration(1 + w.r.Int64N(int64(3*time.Second))),
		full: map[string]bool{}, orphans: map[string]*Holder{},
	}
	n.Holder = NewHolder(Terms{ID: n.id, Totals: Amounts{w.total}, TTL: simTTL, Fade: 4 * simTTL, Keep: w.keep})
	w.nodes = append(w.nodes, n)
}

// send runs do after a delay, or never.
func (n *simNode) send(do func()) {
	w := n.w
	if !w.calm && w.r.IntN(12) == 0 {
		return
	}
	delay := time.Duration(w.r.Int64N(int64(5 * time.Millisecond)))
	if !w.calm && w.r.IntN(10) == 0 {
		delay = time.Duration(w.r.Int64N(int64(3 * simTTL)))
	}
	w.events = append(w.events, event{w.now + delay, do})
}

// reaches runs do in the store, if the network permits.
func (n *simNode) reaches(do func()) {
	n.send(func() {
		if !n.cut && !n.w.store.away {
			do()
		}
	})
}

// hears runs do in the node, unless the node has given up; a paused node runs it later.
func (n *simNode) hears(attempt int, do func()) {
	var arrive func()
	arrive = func() {
		switch {
		case n.cut || n.gone || attempt != n.attempt || !n.busy:
		case n.paused > n.w.now:
			n.w.events = append(n.w.events, event{n.paused, arrive})
		case n.clock()-n.began >= simLimit: // its context has ended meanwhile
			n.end(false)
		default:
			do()
		}
	}
	n.send(arrive)
}

func (n *simNode) start() {
	n.busy, n.urgent = true, false
	n.attempt++
	n.Begin(n.clock())
	n.ask()
}

func (n *simNode) ask() {
	if n.group == "" {
		n.place()
		return
	}
	n.get(n.group, n.answer)
}

func (n *simNode) answer(s State, revision int) {
	most := n.w.most
	if s.Seq == 0 {
		most = n.w.alone
	}
	if n.token == 0 && len(s.Leases) >= most && s.Of(n.id).Token == 0 {
		n.full[n.group], n.group = true, ""
		n.ask()
		return
	}
	n.Aim(n.clock(), s, Amounts{n.demand})
	n.tell()
	n.put(n.group, n.Renew(n.clock(), Amounts{len(n.work)}), revision, func(won bool) {
		switch {
		case !won:
			n.ask()
			return
		case n.urgent:
			n.Confirm()
			n.lookAfter()
			return
		}
		n.Confirm()
		n.tell()
		n.visit()
	})
}

func (n *simNode) end(ok bool) {
	if !ok {
		n.Fail()
		clear(n.orphans)
	}
	n.busy, n.tick = false, n.clock()+simEvery
	n.tell()
}

// tell gives the limiter its bound.
func (n *simNode) tell() {
	n.told = n.Bound(n.clock())
	n.had = n.had || n.told.Amounts[Slots] > 0
}

// run is one step of a node.
func (n *simNode) run() {
	now := n.clock()
	if n.busy && now-n.began >= simLimit {
		n.end(false)
	}
	// Work comes first: after a pause the first admission precedes everything else.
	for range n.w.r.IntN(4) {
		if len(n.work) < min(n.demand, n.told.Amounts[Slots]) && now < n.told.Until {
			n.work = append(n.work, n.w.now+time.Duration(n.w.r.Int64N(int64(n.long))))
			if b := n.Bound(now); b.Standing == Over || !n.w.keep && b.Standing != Held {
				n.w.t.Fatalf("%v: admitted while it is %v", n.w.now, b.Standing)
			}
		}
	}
	if !n.busy && now >= n.tick {
		n.tell()
		n.start()
	}
}

func (w *world) step() {
	w.now += simStep
	due := w.events
	w.events = nil
	for _, e := range due {
		if e.at <= w.now {
			e.do()
		} else {
			w.events = append(w.events, e)
		}
	}
	for _, n := range w.nodes {
		for i := len(n.work) - 1; i >= 0; i-- { // also while the node is paused: the work is done elsewhere
			if n.work[i] <= w.now {
				n.work = append(n.work[:i], n.work[i+1:]...)
			}
		}
		if !n.gone && n.paused <= w.now {
			n.run()
		}
	}
	w.check()
}

// check checks the invariants.
func (w *world) check() {
	w.checkGroups()
	valid, running, allowed := 0, 0, w.total
	for _, n := range w.nodes {
		b, record := n.Bound(n.clock()), w.store.values[n.group].Of(n.id).Has[Slots]
		if b.Standing == Held {
			valid += b.Amounts[Slots]
			if b.Amounts[Slots] > record {
				w.t.Fatalf("%v: %s may use %d until %v, and is known to have %d", w.now, n.id, b.Amounts[Slots], b.Until-n.clock(), record)
			}
		}
		running += len(n.work)
		switch {
		case b.Standing != Held: // the lease is over, or the node has left
			if !n.lost {
				n.lost, n.most = true, max(len(n.work), n.has[Slots])
			}
			n.most = max(n.most, w.total/max(n.replicas, 1), n.has[Slots])
		case len(n.work) <= record:
			n.lost = false
		}
		if n.lost {
			allowed += n.most
			if len(n.work) > n.most {
				w.t.Fatalf("%v: %s runs %d and had %d", w.now, n.id, len(n.work), n.most)
			}
		} else if len(n.work) > record {
			w.t.Fatalf("%v: %s runs %d, and is known to have %d", w.now, n.id, len(n.work), record)
		}
	}
	if valid > w.total || running > allowed {
		w.t.Fatalf("%v: of %d, %d may be used and %d are, at most %d with those that lost their lease", w.now, w.total, valid, running, allowed)
	}
	w.worst = max(w.worst, running-w.total)
}

// disturb causes a random event now and then.
func (w *world) disturb() {
	n := w.nodes[w.r.IntN(len(w.nodes))]
	switch w.r.IntN(12) {
	case 0, 1:
		n.cut = !n.cut
	case 2, 3:
		n.paused = w.now + time.Duration(w.r.Int64N(int64(4*simTTL)))
	case 4: // kill -9, and a restart; its work dies with it
		n.gone, n.work = true, nil
		w.join()
	case 5:
		if len(w.nodes) < w.crowd {
			w.join()
		}
	case 6:
		n.demand = w.r.IntN(40)
	case 7:
		w.store.away = !w.store.away
	case 8:
		if n.paused <= w.now && !n.gone && !w.store.away && !n.cut { // Close
			n.Quit()
			if v := w.store.values[n.group]; v.revision > 0 {
				w.store.values[n.group] = simValue{n.Leave(v.State, Amounts{len(n.work)}), v.revision + 1}
			}
			n.gone = true
		}
	}
	alive := w.nodes[:0]
	for _, n := range w.nodes {
		if !n.gone || len(n.work) > 0 {
			alive = append(alive, n)
		}
	}
	if w.nodes = alive; len(alive) == 0 {
		w.join()
	}
}
