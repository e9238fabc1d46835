package gate

import (
	"math"
	"time"

	"github.com/spillway-go/spillway/limit"
)

// parking finds work that holds slots and uses nothing scarce: a poll, a wait for a lock, a call of a
// dependency that hangs. Such work looks like work whose own backend hangs or is loaded, so the gate
// runs a trial. When no slot is free, a trial parks some overdue work. Parked work runs on without its
// slots, which go to others, the probes. If the probes end, the parked work loads nothing scarce. The
// work stays parked until it ends, and the next trial frees up to twice as many slots. If the probes show
// nothing and hold all slots, the trial goes on with twice as many. Otherwise the work of the trial takes
// its slots again, and the next trial waits. docs/adr/0021 has the reasons.
//
//	nothing ── Relieve ──▶ trying ──▶ passed      the probes end as usual
//	                          │ ────▶ crowded     the probes show nothing and hold all slots
//	                          │ ────▶ nothing     abnormal work: refuted
//	                          └─────▶ doubted     normal work: refuted once, measured again, then as from trying
//
// A trial may begin in any state but trying and doubted. After crowded the same trial goes on.
type parking struct {
	state       trialState
	sort        uint8         // of the parked work: see sortOf
	own         bool          // nearly all work that arrives is of the kinds that the trial parked
	step        int32         // slots that the next trial frees, at least an eighth of the limit
	number      int32         // of the latest trial
	began       time.Duration // when the measurement began
	after       uint64        // latest start before the measurement: later starts are probes
	inTurn      float64       // additional age of a probe that is not slow: a serial backend serves the probes in turn
	quick, slow int           // probes that ended as usual, and late
	hold        int           // probes that ended after they were overdue, and show that the backend hangs
	next        time.Duration // earliest time of the next trial
	pause       time.Duration // after the next trial in which the backend hangs
	overdue     time.Duration // age from which work may be parked. A probe of that age holds its slots as the parked work does
	nextLook    time.Duration // when work is looked for again that may be parked without a trial
	credit      int           // slots of such work that may be parked
}

type trialState uint8

const (
	nothing trialState = iota
	passed
	crowded
	trying
	doubted
)

// abnormal is the sort of all abnormal work. The sort of other overdue work is its kind.
const abnormal = limit.Classes

// sortOf returns the sort of overdue work. Work is abnormal if it has run for over twice as long as
// work of its kind finished of late.
func (g *Gate) sortOf(now time.Duration, w *Work) uint8 {
	if float64(now-w.Start-w.Away) < abnormalTimes*g.service.kinds.list[w.Kind].usual.longest {
		return w.Kind
	}
	return abnormal
}

// parked is what trials have found about a kind.
type parked struct {
	now   int32         // pieces of work that are parked
	trial int32         // number of the latest trial that parked work of the kind
	next  time.Duration // earliest time of the next trial
	pause time.Duration // after the latest refuted trial of normal work
	shown bool          // the kind has passed a trial
}

const (
	mostOwn       = 0.95 // share of the arrivals from which work of the parked kind counts as probes
	largestStep   = 4    // part of the limit that a trial frees once others have been served
	firstStep     = 8    // part of the limit that the first trial frees
	manyProbes    = 16   // starts that count
	fewestProbes  = 4    // if no more probes get a slot
	slower        = 0.04 // additional share of slow probes that is no harm, besides a standard error
	muchSlower    = 0.5  // the same for abnormal work
	lookEvery     = 10 * time.Millisecond
	heldEach      = 3               // probes that hold their slots for each that ended, from which the backend hangs
	measureMost   = 2 * time.Second // for fewer probes
	abnormalPause = 250 * time.Millisecond
	mostStep      = 1 << 20         // keeps the step finite
	hangPause     = 8 * time.Second // longest pause after trials in which the backend hangs
	normalPause   = 4 * time.Second
	normalLonger  = 4               // factor on normalPause with each refuted trial
	normalLongest = 5 * time.Minute // longest pause of normal work
)

// candidate returns the oldest work that a trial may park now, of the work that took its slots before
// the time overdue, or nil. A trial of abnormal work is worthwhile if such work holds a quarter of the
// slots. A trial of normal work is worthwhile if overdue work of its kind holds half of them, or the
// largest part of three quarters, and the law does not know that the backend is full. With few slots it
// would be a large change.
func (g *Gate) candidate(now, overdue time.Duration) *Work {
	full, few := g.limits.backendFull(now), g.Limit() < firstStep
	var slots [abnormal + 1]int
	var first [abnormal + 1]*Work
	all, most := 0, uint8(0)
	for w := g.holding.first; w != nil && w.taken <= overdue; w = w.next {
		k := &g.service.kinds.list[w.Kind].parked
		if now < k.next {
			continue
		}
		at := g.sortOf(now, w)
		if at != abnormal && (few || full && (k.now == 0 || k.pause > normalPause)) {
			continue
		}
		if first[at] == nil {
			first[at] = w
		}
		all += w.Cost
		if slots[at] += w.Cost; slots[at] > slots[most] {
			most = at
		}
	}
	if 4*slots[abnormal] >= g.Limit() {
		most = abnormal
	} else if 2*slots[most] < g.Limit() && 4*all < 3*g.Limit() {
		return nil
	}
	return first[most]
}

// ParkShown parks abnormal work of kinds that have passed a trial before the slots run out, so that
// others need not wait for a trial. Each piece of work that ends as usual lets heldEach slots be parked.
func (g *Gate) ParkShown(now time.Duration) (freed bool) {
	p := &g.parking
	if p.credit <= 0 || p.trying() || now < p.nextLook || !g.mayPark() {
		return false
	}
	p.nextLook = now + lookEvery
	left := g.park(now, g.holding.first, p.credit, func(w *Work) bool {
		return g.service.kinds.list[w.Kind].parked.shown && g.sortOf(now, w) == abnormal
	})
	freed, p.credit = left < p.credit, left
	return freed
}

// park parks work that is overdue, from w on, until the given number of slots is free, in the latest
// trial. park returns how many slots remain to be freed.
func (g *Gate) park(now time.Duration, w *Work, slots int, may func(*Work) bool) (left int) {
	for slots > 0 && w != nil && now-w.taken >= g.parking.overdue && g.MayPause() {
		next := w.next
		if may(w) {
			slots -= w.Cost
			k := &g.service.kinds.list[w.Kind].parked
			k.now++
			k.trial, w.trial = g.parking.number, g.parking.number
			g.putAside(now, w, isParked)
		}
		w = next
	}
	return slots
}

// mayPark reports whether the law alone bounds what runs.
func (g *Gate) mayPark() bool {
	b := g.limits.bounds
	return b.High == 0 && b.Leased == 0 && g.Rule() <= LowRules
}

// Relieve judges and begins trials, and reports whether slots are free that were not. The owner calls
// Relieve when work finds no free slot, and while work waits.
func (g *Gate) Relieve(now time.Duration) bool {
	p := &g.parking
	if !g.cfg.Parks || p.trying() && !g.judge(now) {
		return false
	}
	if g.ParkShown(now) {
		return g.inFlight < g.Limit()
	}
	if now < p.next || g.inFlight < g.Limit() || !g.mayPark() || !g.MayPause() {
		return false
	}
	after := g.overdueAfter()
	if w := g.candidate(now, now-after); w != nil {
		g.beginTrial(now, after, w)
	}
	return g.inFlight < g.Limit()
}

// beginTrial parks work of the sort of w, which is the oldest, and begins to measure.
func (g *Gate) beginTrial(now, overdue time.Duration, w *Work) {
	g.beginShortage()
	p, sort := &g.parking, g.sortOf(now, w)
	if p.state != crowded || sort != p.sort {
		p.number++
	}
	p.state, p.sort, p.overdue = trying, sort, overdue
	p.step = max(p.step, int32(max(1, g.Limit()/firstStep)))
	g.park(now, w, int(p.step)+g.inFlight-g.Limit(), func(w *Work) bool { return g.sortOf(now, w) == sort })
	if p.own, p.inTurn = g.isOwn(), 0; sort == abnormal {
		p.inTurn = agesPerOctave * math.Log2(float64(1+p.step)/2)
	}
	g.measure(now)
}

// isOwn reports whether nearly all arrivals are of the kinds that the trial parked.
func (g *Gate) isOwn() bool {
	own, all := 0.0, 0.0
	for i := range g.service.kinds.list {
		k := &g.service.kinds.list[i]
		all += k.arrivalShare
		if k.parked.trial == g.parking.number {
			own += k.arrivalShare
		}
	}
	return own >= mostOwn*all
}

// measure begins a measurement of the trial.
func (g *Gate) measure(now time.Duration) {
	p := &g.parking
	p.began, p.after, p.quick, p.slow, p.hold = now, g.seq, 0, 0, 0
}

// isProbe reports whether work counts in the measurement. Work that has taken its slots again does not.
func (p *parking) isProbe(w *Grant) bool {
	return w.Seq > p.after && w.Seq <= p.after+manyProbes && w.Start >= p.began && (p.own || w.Kind != p.sort)
}

// shows reports whether a probe that holds its slots as long as the parked work may show that the
// backend hangs. Work that usually takes as long shows nothing, and neither does work of a kind that has
// never finished, once others have.
func (p *parking) shows(k *kind, at float64) bool {
	if k.parked.trial == p.number {
		return p.own
	}
	return p.overdue == overdueAnyway || k.usual.n >= usualKnown && k.usual.isSlow(at)
}

// enter enters the end of a probe of kind k. Work that failed for its own reasons shows nothing.
func (p *parking) enter(k *kind, at float64, o limit.Outcome) {
	switch slow := k.usual.isSlow(at - p.inTurn); {
	case at >= ageOf(p.overdue):
		if p.shows(k, at) {
			p.hold++
		}
	case o == limit.Failed || o == limit.Unknown || o == limit.Canceled && !slow:
	case slow || o == limit.Overload:
		p.slow++
	default:
		p.quick++
	}
}

// learnForTrials enters work that has ended, as a probe and for the usual time of its kind.
func (g *Gate) learnForTrials(now time.Duration, w *Grant, k *kind, o limit.Outcome, elapsed time.Duration) {
	p := &g.parking
	if p.trying() && p.isProbe(w) {
		p.enter(k, ageOf(elapsed), o)
	}
	if o == limit.Success {
		passed, weight := float64(now-k.last), 1/serviceSpan
		if g.line(isParked).n > 0 { // the median changes slowly: trials compare with the time before
			weight = min(passed/float64(usualMemory), weight)
		}
		k.usual.finished(float64(elapsed), passed)
		k.usual.end(ageOf(elapsed), weight)
		if elapsed < p.overdue {
			p.credit = min(p.credit+heldEach, max(1, g.Limit()/largestStep))
		}
	}
}

// judgeEarly decides the trial, if it is of abnormal work and enough probes have ended.
func (g *Gate) judgeEarly(now time.Duration) {
	if p := &g.parking; p.sort == abnormal && p.quick+p.slow >= fewestProbes {
		g.judge(now)
	}
}

// stuck returns how many probes show that the backend hangs. known reports whether all probes are known.
func (g *Gate) stuck(now time.Duration, over bool) (stuck int, known bool) {
	p := &g.parking
	stuck = p.hold
	for w := g.holding.last; w != nil && w.Seq > p.after; w = w.previous {
		if !p.isProbe(&w.Grant) {
			continue
		}
		k, at := &g.service.kinds.list[w.Kind], ageOf(now-w.taken)
		if at < ageOf(p.overdue) && !(over && k.usual.isSlow(at)) {
			return 0, false
		}
		if p.shows(k, at) {
			stuck++
		}
	}
	return stuck, true
}

// trying reports whether a trial is not decided yet.
func (p *parking) trying() bool { return p.state >= trying }

// Trial reports whether a trial is not decided yet, and whether the latest decision was that others
// are served beside the parked work.
func (g *Gate) Trial() (isTrying, hasPassed bool) {
	return g.parking.trying(), g.parking.state == passed
}

// judge decides the trial, and reports whether the trial has ended.
func (g *Gate) judge(now time.Duration) bool {
	p := &g.parking
	full, over := g.inFlight >= g.Limit(), now-p.began >= measureMost
	if g.seq == p.after && full { // the limit has fallen, and nobody got a slot
		g.endTrial(now, nothing)
		return true
	}
	ended := p.slow + p.quick
	if p.sort == abnormal && ended >= fewestProbes {
		return g.conclude(now, ended, 0)
	}
	if !over && g.seq-p.after < manyProbes && !full {
		return false
	}
	hold, known := g.stuck(now, over)
	switch {
	case !known:
		return false
	case ended+hold >= fewestProbes:
		return g.conclude(now, ended, hold)
	case full && (p.sort == abnormal || p.slow+hold == 0): // work that shows nothing has the slots
		g.endTrial(now, crowded)
	case !over: // more may come
		return false
	case ended+hold > 0:
		return g.conclude(now, ended, hold)
	default:
		g.endTrial(now, nothing)
	}
	return true
}

// endTrial ends a trial whose probes have shown nothing. A doubt remains.
func (g *Gate) endTrial(now time.Duration, state trialState) {
	p := &g.parking
	switch {
	case p.state == doubted:
		g.refute(now)
		return
	case state == crowded:
		p.step = min(2*p.step, mostStep)
	}
	p.state = state
}

// conclude ends the trial, given how many probes ended and how many show that the backend hangs, and
// reports whether the trial has ended. Normal work may load the backend, so there each slow probe
// counts. Abnormal work is expected to load nothing: only a hang, or a backend that is much too slow,
// refutes its trial.
func (g *Gate) conclude(now time.Duration, ended, hold int) bool {
	p, usual, n := &g.parking, g.usuallySlow(), max(float64(ended), 1)
	slow := float64(p.slow)/n - usual
	refuted := hold > heldEach*ended || ended >= fewestProbes && slow > muchSlower
	if p.sort != abnormal {
		refuted = hold > ended || slow > slower+math.Sqrt(usual*(1-usual)/n)
	}
	switch {
	case !refuted:
		g.pass()
	case p.sort != abnormal && p.state == trying: // one measurement may be chance
		p.state = doubted
		g.measure(now)
		return false
	default:
		g.refute(now)
	}
	return true
}

// pass ends a trial whose probes have ended as they should. The parked work stays parked.
func (g *Gate) pass() {
	p := &g.parking
	p.state, p.pause = passed, 0
	p.step = min(2*p.step, int32(max(1, g.Limit()/largestStep)))
	for i := range g.service.kinds.list {
		if k := &g.service.kinds.list[i].parked; k.trial == p.number {
			k.shown = true
			if 4*int(k.now) >= g.Limit() { // loaded work of that size would have been seen
				k.pause = 0
			}
		}
	}
}

// usuallySlow is the usual share of slow work among the kinds of the probes.
func (g *Gate) usuallySlow() float64 {
	slow, all := 0.0, 0.0
	for i := range g.service.kinds.list {
		if k := &g.service.kinds.list[i]; g.parking.own || i != int(g.parking.sort) {
			slow, all = slow+k.arrivalShare*float64(k.usual.slow), all+k.arrivalShare
		}
	}
	if all == 0 {
		return 0
	}
	return slow / all
}

// refute ends the trial, and gives the work that it parked its slots again. A kind of normal work waits
// longer each time.
func (g *Gate) refute(now time.Duration) {
	p := &g.parking
	p.state, p.step = nothing, 0
	for w := g.line(isParked).first; w != nil; {
		next := w.next
		if w.trial == p.number {
			g.Back(now, w)
		}
		w = next
	}
	if p.sort == abnormal {
		p.credit = 0
		p.pause = min(max(2*p.pause, abnormalPause), hangPause)
		p.next = now + p.pause
		return
	}
	k := &g.service.kinds.list[p.sort].parked
	k.pause = min(max(normalLonger*k.pause, normalPause), normalLongest)
	k.next = now + k.pause
}
