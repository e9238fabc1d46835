// Package gate is the decision core of the limiter. Arrivals and ends of work go in with their
// times, decisions come out. The package is pure: no clock, no lock, no goroutine. The limiter
// holds a gate under a mutex, the simulator drives a gate in virtual time, and both get the same
// decisions.
//
// The law of package limit, within the bounds that the owner sets, says how many slots there are. The
// gate says who gets a slot, who waits and who is refused. The owner of a gate is the limiter or the
// simulator.
//
// Work waits in strict order of priority, first come, first served within a priority. The gate
// decides on arrival whether work may wait, by its predicted wait: the work ahead over the slots
// that higher priorities leave free. The wait must leave enough of the caller's time. In a burst
// that the queue can absorb, work may wait for several service times. A queue that does not drain
// only adds latency. The gate then bounds the wait by about one service time and refuses the rest
// at once. With heavy tails more work may finish if it waits longer and deadlines end the slowest
// work: see life.
//
// Service times are measured per kind of work. The owner names the kind; otherwise the kind follows
// from the priority and the order of magnitude of the deadline. Package places bounds the number of
// kinds. To the law a kind is a class of work.
//
// Not every arrival comes to decide. Enter admits to a free slot. Repeats says how long a refusal of like
// work stays the same. Force, and wouldDecide behind it, speak for a dry run, and Next decides about
// waiters. Work ends in end, EndWork or RevokeWork. A new rule about arrivals has to hold in all of them.
//
// There are two dry runs. In a dry run of all work, Force admits everything, and says what an enforcing
// gate would have done: see dryRun. In a dry run of one arrival, DryRun, the gate itself decides, and
// admits the work even if the decision is to refuse.
package gate

import (
	"math"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/places"
	"github.com/spillway-go/spillway/internal/priority"
	"github.com/spillway-go/spillway/limit"
)

// Action is the decision about an arrival.
type Action uint8

const (
	Admit  Action = iota
	Wait          // queued, until Next grants or drops it, or Leave takes it out
	Reject        // Decision.Reason says why
)

// Decision is the answer to an arrival.
type Decision struct {
	Action Action
	Reason spillway.Reason // with Reject; with Admit: why a dry run would have refused the work, or zero
	Anyway bool            // with Reject: the refusal is for no lack of capacity, so MaxRefused does not count it, nor does the demand
	// Preempted is a waiter of lower priority that lost its place to the arrival. The caller must
	// notify the waiter's owner. The waiter counts as rejected.
	Preempted *Waiter
	probe     bool // with Wait: queued although the predicted wait is too long
	ofKind    bool // with Reject: only evidence about the kind of the work caused the refusal
}

// Never is the deadline of work without one.
const Never = time.Duration(math.MaxInt64)

// Arrival is a request to run work.
type Arrival struct {
	Cost     int           // slots, at least 1
	Deadline time.Duration // when the caller leaves, or Never
	Kind     places.Name   // from KindOf; zero: derived from the priority and the deadline
	Name     string        // name behind Kind, for reports
	Priority spillway.Priority
	Traits   Traits
}

// Traits are flags for special properties of an arrival.
type Traits uint8

const (
	Long      Traits = 1 << iota // admitted like other work, but holds no slots while it runs
	OverShare                    // refused for Quota unless a slot is free: neither waits nor is admitted for MaxRefused
	DryRun                       // the decision is only counted; while the gate is open the work is admitted
)

// held is how many slots the work holds while it runs.
func (a *Arrival) held() int {
	if a.Traits&Long != 0 {
		return 0
	}
	return a.Cost
}

const (
	// levels is the number of priorities. A level is the number of a priority: 0 is the highest, and
	// the levels above have smaller numbers.
	levels = priority.Levels
	// Floor keeps the lowest priority from starving. One grant in Floor goes to the lowest priority
	// that waits, 0.4 % of all grants.
	Floor = 256
)

// Config configures a gate.
type Config struct {
	Law       limit.Law // the first law; SetLaw replaces it
	QueueSize int       // most waiters
	// MaxWait is the longest wait. Never: work waits until its turn, or until its caller leaves, and
	// waiters behind large work do not pass it.
	MaxWait time.Duration
	// MaxAside is how many pieces of work may be aside at a time: see Work. Zero: none.
	MaxAside int
	// Parks allows trials that park overdue work: see parking.
	Parks bool
	// MaxRefused is the share of arrivals that may be refused for lack of capacity. Beyond that
	// share the gate admits work over the limit. Zero or one: any share. Work that would be late
	// even if it ran at once is refused even beyond that share.
	MaxRefused float64
}

// Gate decides what may run.
type Gate struct {
	// What an admission and its end touch comes first.
	*lately
	*shortage
	limits            limits
	inFlight          int             // slots in use
	running           int             // pieces of work that run, long work included
	long              int             // pieces of long work that run
	queued            int             // callers that wait
	closed            spillway.Reason // why the intake is closed; zero while open
	refusedSinceStart int             // refusals for lack of a slot, since work last started
	freed             int             // ends since the limit was exceeded whose slots were not granted again
	seq               uint64          // number of the latest start, without long work
	unqueued          uint64          // pieces of work that were admitted at once
	crowdedAt         time.Duration   // when work last started over the limit, as in a dry run or for MaxRefused
	busyAt            time.Duration   // since when any slots have been in use
	overdemand        float64         // how long demand has exceeded the capacity, as a share of tolerance
	life              *life           // nil until a deadline ends work, since nothing is asked of it before
	dry               *dryRun         // nil while the gate enforces
	places            places.Table    // places of the kinds
	demand            demand
	service           service
	ledger            [levels]account
	holding           line // tracked work that holds its slots, in the order of taking them
	tallies           tallies
	cfg               Config
	latest            Grant // the latest start
}

// New returns an open gate.
func New(cfg Config) *Gate {
	cfg.QueueSize, cfg.MaxAside = max(cfg.QueueSize, 0), max(cfg.MaxAside, 0)
	g := &Gate{cfg: cfg, places: places.New(), overdemand: overdemandMost, shortage: &noShortage}
	g.measureIn(&unmeasured)
	g.limits.bounds = &noBounds
	g.SetLaw(cfg.Law)
	return g
}

// Enter admits and tracks new work that Arrive would admit for the usual reason: a slot is free, nobody
// waits and ParkShown has nothing to do. Otherwise Enter does nothing and returns false.
func (g *Gate) Enter(now time.Duration, a *Arrival, w *Work) bool {
	if g.queued > 0 || !g.fits(a.Cost) || g.closed != 0 || a.Deadline <= now || g.parking.credit > 0 && now >= g.parking.nextLook {
		return false
	}
	lv, kind := g.came(now, a)
	g.ledger[lv].admitted++
	g.unqueued++
	w.of(now, a, kind, g.service.kinds.list[kind].tally)
	g.start(now, lv, &w.Grant, true)
	g.track(w)
	return true
}

// Arrive decides about new work. w is used only if the action is Wait; a nil w means that the work
// does not wait.
func (g *Gate) Arrive(now time.Duration, a Arrival, w *Waiter) Decision {
	lv, kind := g.came(now, &a)
	d := g.decide(now, lv, kind, &a, w != nil)
	if a.Traits&DryRun != 0 && g.closed == 0 {
		d = g.unenforced(lv, d)
	}
	switch d.Action {
	case Admit:
		g.admit(now, lv, kind, &a)
	case Wait:
		g.beginShortage()
		w.cost, w.held, w.level, w.kind, w.since, w.deadline = a.Cost, a.held(), lv, kind, now, a.Deadline
		w.probe = d.probe
		w.work = float64(w.held) * g.service.holdOf(lv, kind)
		g.queues[lv].push(w)
		g.service.kinds.list[kind].present++
		g.queued++
		if a.Cost > 1 {
			g.large++
		}
	case Reject:
		g.beginShortage()
		g.rejected[lv][d.Reason]++
		g.rejectedOf(kind, 1)
		g.back[lv] += float64(g.slotsFor(&a))
		if !d.Anyway {
			g.demand.refuse(1, d.Reason)
			g.refusedSinceStart++
		}
	}
	return d
}

// came counts new work in the demand and for its kind, and returns its level and its kind.
func (g *Gate) came(now time.Duration, a *Arrival) (lv int, kind uint8) {
	if g.demand.due(now) {
		g.roll(now)
	}
	lv = priority.Level(a.Priority)
	g.demand.arrive(lv, float64(g.slotsFor(a)), 1)
	key := a.Kind.Key(lv, places.Scale(left(now, a.Deadline)))
	kind, ok := g.places.Again(key, 1)
	if !ok {
		kind = g.kind(key, 1)
	}
	k := &g.service.kinds.list[kind]
	if k.named && k.name == "" {
		k.name = a.Name
		k.tally = g.tallies.find(a.Name)
	}
	if a.Deadline > now {
		k.came(key, 1)
	}
	return lv, kind
}

// decide refuses work that cannot be admitted at all, and enforces MaxRefused for other refusals.
func (g *Gate) decide(now time.Duration, lv int, kind uint8, a *Arrival, mayWait bool) Decision {
	if g.closed != 0 {
		return Decision{Action: Reject, Reason: g.closed}
	}
	if a.Deadline <= now && !g.unbounded() {
		return Decision{Action: Reject, Reason: spillway.ReasonDeadlineTooClose, Anyway: true}
	}
	d := g.admitOrQueue(now, lv, kind, a, mayWait)
	if a.Traits&OverShare != 0 && d.Action != Admit {
		return Decision{Action: Reject, Reason: spillway.ReasonQuota, Anyway: true}
	}
	if d.Action == Wait && g.queued >= g.cfg.QueueSize {
		d = g.preempt(lv, a)
	}
	// While the limit is exceeded, no waiter gets a slot, but arrivals are admitted for MaxRefused.
	// So work that would wait is admitted too.
	if (d.Action == Reject && !d.Anyway || d.Action == Wait && d.Preempted == nil && g.inFlight > g.Limit()) && g.mustAdmit(g.inFlight, a.held()) {
		return Decision{Action: Admit}
	}
	return d
}

// admitOrQueue finds a slot for work, or a place in the queue if the queue leads to a slot in time. A
// free slot is granted however long such work takes.
func (g *Gate) admitOrQueue(now time.Duration, lv int, kind uint8, a *Arrival, mayWait bool) Decision {
	if g.fits(a.Cost) && (g.queued == 0 || !g.ahead(now, lv)) {
		if mayWait && g.gathers(now, lv, kind, a) {
			return Decision{Action: Wait}
		}
		return Decision{Action: Admit}
	}
	if !mayWait || g.cfg.QueueSize == 0 {
		return Decision{Action: Reject, Reason: g.blame(spillway.ReasonQueueFull)}
	}
	return g.queueIfSoon(now, lv, kind, a, g.predict(lv, a.Cost))
}

// queueIfSoon queues work if its predicted wait leads to a slot in time.
func (g *Gate) queueIfSoon(now time.Duration, lv int, kind uint8, a *Arrival, wait float64) Decision {
	if g.unbounded() || !g.service.known() {
		return Decision{Action: Wait}
	}
	left := left(now, a.Deadline)
	stays, reason := float64(left), spillway.ReasonDeadlineTooClose
	if left == Never {
		stays, reason = g.service.kinds.list[kind].stay.most(), g.blame(spillway.ReasonWaitTooLong)
	}
	most := stays - g.need(now, kind, a.Deadline)
	probe := wait > most && !g.floorServes(lv, most)
	if probe && (left < Never && wait > stays || !g.service.kinds.probe(now, kind, g.service.part.mean)) {
		return Decision{Action: Reject, Reason: reason, Anyway: left < Never && most < 0, ofKind: left == Never}
	}
	if wait > g.bound(lv, left) && !g.floorServes(lv, min(most, g.longestWait(left))) {
		return Decision{Action: Reject, Reason: g.blame(spillway.ReasonWaitTooLong)}
	}
	return Decision{Action: Wait, probe: probe}
}

// ahead reports whether any waiter comes before new work of a level.
func (g *Gate) ahead(now time.Duration, lv int) bool {
	ahead := 0
	for i := range lv + 1 {
		ahead += g.queues[i].n
		if w := g.queues[i].first; w != nil && g.blocks(now, w) {
			ahead--
		}
	}
	return ahead > 0
}

// fits reports whether cost more slots may be used. Work that costs more than the whole limit runs
// alone; otherwise it could never run.
func (g *Gate) fits(cost int) bool {
	return cost <= g.Limit()-g.inFlight || g.inFlight == 0 // the sum might overflow an int
}

// Short reports whether new work of the given cost finds no free slot.
func (g *Gate) Short(cost int) bool { return g.queued > 0 || !g.fits(cost) }

// mustAdmit reports whether one more refusal for lack of capacity would exceed the share that may
// be refused, and the lease has room for cost.
func (g *Gate) mustAdmit(inFlight, cost int) bool {
	return g.limits.leased(inFlight, cost) && g.cfg.MaxRefused > 0 && g.cfg.MaxRefused < 1 && g.demand.share() >= g.cfg.MaxRefused
}

// slotsFor is how many slots the work takes, at most the limit: work that costs more runs alone.
func (g *Gate) slotsFor(a *Arrival) int { return min(a.held(), g.Limit()) }

// preempt frees a place in a full queue: the last waiter of the lowest level below lv is preempted if
// that waiter may be refused. An arrival in a dry run preempts nobody.
func (g *Gate) preempt(lv int, a *Arrival) Decision {
	for i := levels - 1; i > lv && !g.mustAdmit(g.inFlight, a.held()); i-- {
		if w := g.queues[i].last; w == nil {
			continue
		} else if a.Traits&DryRun == 0 {
			g.take(w)
			g.refuse(i, spillway.ReasonPreempted, 1, w.held)
			g.rejectedOf(w.kind, 1)
			return Decision{Action: Wait, Preempted: w}
		}
		return Decision{Action: Wait}
	}
	return Decision{Action: Reject, Reason: spillway.ReasonQueueFull}
}

// Unenforced counts an admitted arrival as work that the gate's owner would have refused.
func (g *Gate) Unenforced(p spillway.Priority, reason spillway.Reason) Decision {
	return g.unenforced(priority.Level(p), Decision{Action: Reject, Reason: reason})
}

// Came returns how many arrivals of a level there were.
func (g *Gate) Came(lv int) uint64 {
	return g.offered(lv)
}

// Took returns how long work holds its slots in the mean, or zero if nothing has been measured.
func (g *Gate) Took() time.Duration {
	if !g.service.known() {
		return 0
	}
	return time.Duration(g.service.mean)
}

// unenforced counts a refusal that is not enforced, and admits the arrival.
func (g *Gate) unenforced(lv int, d Decision) Decision {
	if d.Action != Reject {
		return Decision{Action: Admit}
	}
	g.beginShortage()
	g.would[lv][d.Reason]++
	return Decision{Action: Admit, Reason: d.Reason}
}

// admit starts work that did not wait.
func (g *Gate) admit(now time.Duration, lv int, kind uint8, a *Arrival) {
	g.ledger[lv].admitted++
	g.unqueued++
	if g.queued > 0 {
		g.floor.pass(now)
	}
	g.latest.of(now, a, kind, g.service.kinds.list[kind].tally)
	g.start(now, lv, &g.latest, true)
}

// grant starts a waiter. The waiter counts as admitted once its caller has accepted the grant.
func (g *Gate) grant(now time.Duration, w *Waiter) {
	g.take(w)
	g.granted++
	g.ledger[w.level].granted++
	g.latest = Grant{Start: now, Waited: now - w.since, Deadline: w.deadline, Cost: w.cost, Priority: priority.Of(w.level), Kind: w.kind, tally: g.service.kinds.list[w.kind].tally, Long: w.held == 0}
	g.start(now, w.level, &g.latest, true)
}

// start gives slots to work that starts at now, or that takes its slots again. To the law the work starts
// at now. The law does not see long work, which holds no slots.
func (g *Gate) start(now time.Duration, lv int, w *Grant, isNew bool) {
	if isNew {
		g.running++
		if w.Long {
			g.long++
			w.Seq = g.seq
			return
		}
		g.service.kinds.list[w.Kind].present++
	}
	g.seq++
	w.Seq = g.seq
	w.Cost = min(w.Cost, math.MaxInt-g.inFlight) // inFlight must not overflow
	if g.inFlight == 0 {
		g.busyAt = now
	}
	g.inFlight += w.Cost
	g.ledger[lv].inFlight += w.Cost
	w.tally.InFlight += w.Cost
	if g.inFlight > g.Limit() && g.Holding() > 1 {
		g.crowdedAt = now
	}
	if l := &g.limits; l.law != nil {
		load := g.load()
		if load.Queued == 0 {
			load.Queued = g.refusedSinceStart
		}
		load.Class = w.Kind
		load.Enforced = max(load.Enforced, load.InFlight) // MaxRefused and dry runs admit over the limit
		l.law.Admit(now, load)
		if n := l.law.Limit(); n != l.said {
			l.say(n)
		}
	}
	g.refusedSinceStart = 0
}

// Holding is how many pieces of work hold slots. Granted work counts at once.
func (g *Gate) Holding() int { return g.running - g.long - g.aside[0].n - g.aside[1].n }

func (g *Gate) load() limit.Load {
	inFlight := g.inFlight
	if g.Holding() == 1 { // work that runs alone counts as at most the limit
		inFlight = min(inFlight, g.Limit())
	}
	return limit.Load{InFlight: inFlight, Queued: g.queued, Enforced: g.Limit()}
}

// Started returns the work that Arrive, Force or Next started last. Enter returns its own.
func (g *Gate) Started() Grant { return g.latest }

// Grant is one piece of work while it runs.
type Grant struct {
	Seq      uint64
	Start    time.Duration
	Waited   time.Duration // time in the queue
	Deadline time.Duration // deadline of the arrival; zero if unknown
	Cost     int
	tally    *Tally
	Priority spillway.Priority
	Kind     uint8 // place of the kind
	Long     bool  // see Traits
	overtook bool  // see Gate.overtakes
	// Away is the time since Start in which the work waited for its client. The owner sets Away
	// before the end.
	Away time.Duration
}

// of makes w the grant of an arrival that did not wait.
func (w *Grant) of(now time.Duration, a *Arrival, kind uint8, tally *Tally) {
	// The compiler would copy a literal. Seq is set at the start.
	w.Start, w.Waited, w.Deadline, w.Away, w.Cost = now, 0, a.Deadline, 0, a.Cost
	w.Priority, w.Kind, w.Long, w.overtook = a.Priority, kind, a.Traits&Long != 0, false
	w.tally = tally
}

// leavesAtDeadline reports whether a caller that leaves now leaves because of its deadline. Over a
// network a caller leaves a little before the deadline of its request, because that deadline is
// counted from the arrival of the request. A dry run ends no work by itself.
func (w Grant) leavesAtDeadline(now time.Duration) bool {
	return w.Deadline > w.Start && w.Deadline != Never && now >= w.Deadline-(w.Deadline-w.Start)/20
}

// End returns the slots of one piece of work.
func (g *Gate) End(now time.Duration, w Grant, o limit.Outcome) {
	if w.tally == nil { // the owner has made the grant
		w.tally = &g.tallies.first
	}
	g.end(now, &w, o)
}

func (g *Gate) end(now time.Duration, w *Grant, o limit.Outcome) {
	lv := priority.Level(w.Priority)
	g.running--
	g.ledger[lv].completed++
	tally := w.tally
	if w.Long { // long work is no evidence about other work
		g.long--
		if o == limit.Canceled {
			o = limit.Success // clients end streams by leaving
		}
		tally.count(o)
		return
	}
	k := &g.service.kinds.list[w.Kind]
	switch {
	case w.Deadline == Never:
		o = k.stay.end(float64(w.Waited+now-w.Start), o)
	case o == limit.Canceled && w.leavesAtDeadline(now):
		o = limit.Deadline
	}
	g.service.outcome(o)
	tally.count(o)
	slots := g.Limit()
	among := max(slots, g.inFlight) // a fallen limit may not be reached yet
	k.present--
	if g.giveBack(w, w.Cost); g.inFlight >= slots {
		if g.freed++; w.overtook {
			g.freed = 2 // the slot goes to the next work that overtakes
		}
	}
	// The work counts with the time that it took, which ends now.
	elapsed, toLaw := now-w.Start-w.Away, o
	if o == limit.Deadline || o == limit.Canceled {
		if elapsed < w.Away {
			o = limit.Unknown // the client took the time: the work is no loss
		}
		if elapsed < w.Waited+w.Away {
			toLaw = limit.Unknown // the work spent most of its time in the queue, or its client took the time
		}
	}
	g.learn(now, w, k, o, elapsed, among)
	if l := &g.limits; l.sees(w) {
		l.law.Observe(limit.Sample{Seq: w.Seq - l.since, Start: now - elapsed, End: now, Outcome: toLaw, Class: w.Kind}, limit.Load{InFlight: g.inFlight, Queued: g.queued, Enforced: slots})
		if n := l.law.Limit(); n != l.said {
			l.say(n)
		}
	}
	if g.parking.trying() {
		g.judgeEarly(now)
	}
	if o != limit.Unknown { // unfinished work, for example after a panic, has no valid duration
		tally.Service.Record(int64(elapsed))
	}
}

// learn enters work that has ended into the measurements of the gate. The work had among slots in use
// around it.
func (g *Gate) learn(now time.Duration, w *Grant, k *kind, o limit.Outcome, elapsed time.Duration, among int) {
	within, held, dry := w.Start > g.crowdedAt, elapsed, g.dry != nil
	if !within && lost(o) {
		g.demand.lost++
	}
	if dry {
		held = g.timeWithin(limit.Sample{Seq: w.Seq, Start: now - elapsed, End: now, Outcome: o, Class: w.Kind}, g.load())
		within, among = within || held != elapsed, g.Limit()
	}
	if !dry && !g.parking.trying() && !k.isEvidence() {
		g.service.last = now
		return
	}
	if g.cfg.Parks {
		g.learnForTrials(now, w, k, o, held)
	}
	prompt := o == limit.Deadline && float64(now-w.Deadline) < g.service.mean/8
	g.service.end(now, k, float64(held), float64(held)/float64(among), within, o)
	if !dry && (o != limit.Deadline || w.Deadline > 0 && now >= w.Deadline) {
		// Work that a shorter, unknown deadline ended is left out.
		if g.life == nil && o == limit.Deadline {
			g.life = &life{}
		}
		if g.life != nil {
			g.life.end(float64(elapsed), o, prompt)
		}
	}
}

// Next returns the next waiter that may run, with granted set, or a waiter that is dropped because
// it cannot finish in time. After any event that may have made room, call Next until it returns
// nil. The owner of a granted waiter answers with Taken or Revoke.
func (g *Gate) Next(now time.Duration) (w *Waiter, granted bool) {
	w = g.next(now)
	if w == nil {
		return nil, false
	}
	if g.late(now, w) {
		g.take(w)
		g.refuse(w.level, w.Late(), 1, 0)
		g.rejectedOf(w.kind, 1)
		return w, false
	}
	over := !g.fits(w.cost)
	if over && !g.overtakes(now, w) {
		return nil, false
	}
	g.grant(now, w)
	g.latest.overtook = over
	if g.floor.due() {
		g.floor.over(1)
	} else {
		g.floor.pass(now)
	}
	return w, true
}

// late reports whether the turn of a waiter comes too late for it to finish in time. A waiter that
// is alone in the queue is late only after its deadline; otherwise the slot goes to a waiter that
// has the time. A waiter without a deadline is late if its caller is expected to leave before.
func (g *Gate) late(now time.Duration, w *Waiter) bool {
	if g.unbounded() || w.deadline > now && g.queued == 1 {
		return false
	}
	left := float64(w.deadline - now)
	if w.deadline == Never {
		if g.mustAdmit(g.inFlight, w.held) {
			return false
		}
		left = g.service.kinds.list[w.kind].stay.most() - float64(now-w.since)
	}
	return left <= 0 || !w.probe && left < g.need(now, w.kind, w.deadline)
}

// overtakes reports whether critical work that has waited for a good part of its time may start
// over the limit, because the limit has fallen and slow work holds all slots. Until the limit is
// reached, such critical work takes every second slot that is given back, and each slot that it
// gives back itself.
func (g *Gate) overtakes(now time.Duration, w *Waiter) bool {
	if g.Rule() != LawRules || !g.limits.leased(g.inFlight, w.held) {
		return false // a bound, a lease or a signal holds without exception
	}
	if w.level > 0 || w.cost > 1 || g.freed < 2 || now-w.since < min((w.deadline-w.since)/4, overtakeAfter) {
		return false
	}
	g.freed = 0
	return true
}

// overtakeAfter is the longest time that critical work waits for a fallen limit to be reached.
const overtakeAfter = 500 * time.Millisecond

// NextForced grants the next waiter regardless of the limit, for a gate that has stopped enforcing.
func (g *Gate) NextForced(now time.Duration) *Waiter {
	w := g.next(now)
	if w != nil {
		g.grant(now, w)
	}
	return w
}

// next returns the waiter whose turn it is.
func (g *Gate) next(now time.Duration) *Waiter {
	if g.queued == 0 {
		return nil
	}
	if w := g.lowest(now); w != nil {
		return w
	}
	var large *Waiter
	for i := range g.queues {
		w := g.queues[i].first
		if w == nil {
			continue
		}
		if !g.blocks(now, w) {
			return w
		}
		if large == nil {
			large = w
		}
		if w = w.next; w != nil && g.fits(w.cost) {
			return w
		}
	}
	return large
}

func (g *Gate) take(w *Waiter) {
	g.queues[w.level].remove(w)
	g.service.kinds.list[w.kind].present--
	g.queued--
	if w.cost > 1 {
		g.large--
	}
}
