package gate

import (
	"math"
	"time"

	"github.com/spillway-go/spillway/internal/places"
	"github.com/spillway-go/spillway/limit"
)

// parking finds work that holds slots and uses nothing scarce: a poll, a wait for a lock, a call of a
// dependency that hangs. Such work looks like work whose own backend hangs or is loaded, so the gate
// runs a trial. When no slot is free, a trial parks some overdue work of one kind. Parked work runs on
// without its slots, which go to others, the probes. If the probes end in their usual time, the parked
// work loads nothing scarce. The work stays parked until it ends, and the next trial parks up to twice
// as much. Otherwise the work of the trial takes its slots again, and the next trial waits.
// docs/adr/0021 has the reasons.
type parking struct {
	trying            bool
	doubted           bool          // the trial has had one measurement in which too many probes were slow
	normal            bool          // the parked work may be long by nature: see isNormal
	own               bool          // work of the parked kind counts as probes
	kind              uint8         // kind of the parked work
	blind             int8          // trials in a row in which only work of the parked kind started
	number            int32         // of the latest trial
	limit             int           // when the measurement began
	began             time.Duration // when the measurement began
	after             uint64        // latest start before the measurement: later starts are probes
	probes            uint64        // starts that count
	held              float64       // age from which a probe holds its slots as the parked work does
	quick, slow, hold int           // probes that ended: as usual, late, and after held
	next              time.Duration // earliest time of the next trial
	pause             time.Duration // after the next trial in which the backend hangs
}

// parked is what trials have found about a kind.
type parked struct {
	now   int32         // pieces of work that are parked
	step  int32         // slots that the next trial frees, at least an eighth of the limit
	next  time.Duration // earliest time of the next trial
	pause time.Duration // after the latest refuted trial of normal work
}

// usual is the usual time of a kind, for trials.
type usual struct {
	n       int32
	median  float32 // of the ages at which work ended: see age
	slow    float32 // share of the work that took over twice the median
	longest float64 // longest time in which work finished of late, in nanoseconds
}

const (
	usualKnown    = 5                      // ends behind a usual time
	usualMemory   = 2 * time.Minute        // how long a usual time lasts while work is parked, and a longest time
	medianStep    = 2 * agesPerOctave      // step of the median, times the weight of an end
	slowAges      = agesPerOctave          // slow work takes twice the usual time
	overdueTimes  = 8                      // usual times of the quickest kind after which work is overdue
	overdueLeast  = 100 * time.Millisecond // work is not overdue sooner
	overdueAnyway = time.Second            // work is overdue while no usual time is known
	abnormal      = 2                      // longest times of its kind from which work is abnormal
	mostOwn       = 0.8                    // share of the arrivals from which work of the parked kind counts as probes
	firstStep     = 8                      // part of the limit that the first trial frees
	fewProbes     = 16
	manyProbes    = 48              // once a quarter of the limit is parked: the effect of loaded work is visible then
	fewestProbes  = 4               // if no more probes get a slot
	slower        = 0.05            // additional share of slow probes that is no harm, besides two standard errors
	muchSlower    = 0.5             // the same for abnormal work, which is expected to load nothing
	measureMost   = 2 * time.Second // for fewer probes
	abnormalPause = 250 * time.Millisecond
	mostBlind     = 16               // then no trial begins for normalPause
	hangPause     = 30 * time.Second // longest pause after trials in which the backend hangs
	normalPause   = 4 * time.Second
	normalLonger  = 4               // factor on normalPause with each refuted trial
	normalLongest = 5 * time.Minute // longest pause of normal work
)

// end enters the age at which work ended. weight is the weight of an end among the latest, once there
// are many.
func (u *usual) end(at, weight float64) {
	slow := float32(0)
	if u.isSlow(at) {
		slow = 1
	}
	if u.n < serviceSpan {
		u.n++
		weight = 1 / float64(u.n)
	}
	u.slow += float32(weight) * (slow - u.slow)
	switch step := float32(weight * medianStep); {
	case u.n <= usualKnown:
		u.median += (float32(at) - u.median) / float32(u.n)
	case float32(at) > u.median+step:
		u.median += step
	case float32(at) < u.median-step:
		u.median -= step
	}
}

// finished enters the time in which work finished. passed is the time since work of the kind last
// ended.
func (u *usual) finished(elapsed, passed float64) {
	u.longest = max(elapsed, u.longest-(u.longest-elapsed)*min(passed/float64(usualMemory), 1))
}

func (u *usual) isSlow(at float64) bool {
	if u.n < usualKnown {
		return at > float64(age(float64(overdueLeast)))
	}
	return at > float64(u.median+slowAges)
}

// learnUsual enters work that finished. While work is parked, the median changes slowly: trials
// compare with the time before.
func (g *Gate) learnUsual(now time.Duration, k *kind, elapsed float64) {
	passed, weight := float64(now-k.last), 1/serviceSpan
	if g.parked.n > 0 {
		weight = min(passed/float64(usualMemory), weight)
	}
	k.usual.finished(elapsed, passed)
	k.usual.end(float64(age(elapsed)), weight)
}

// overdueAfter is how long work holds its slots until it is overdue.
func (g *Gate) overdueAfter() time.Duration {
	quickest := math.Inf(1)
	for i := range g.service.kinds.list {
		if k := &g.service.kinds.list[i]; k.usual.n >= usualKnown && k.arrivalShare >= places.Rare {
			quickest = min(quickest, float64(k.usual.median))
		}
	}
	if math.IsInf(quickest, 1) {
		return overdueAnyway
	}
	return max(overdueTimes*time.Duration(edge(int(quickest)+1)), overdueLeast)
}

// isNormal reports whether work of the kind of w finished of late after about as long as w has run.
func (g *Gate) isNormal(now time.Duration, w *Work) bool {
	return float64(now-w.Start-w.Away) < abnormal*g.service.kinds.list[w.Kind].usual.longest
}

// candidate returns the oldest work that a trial may park now, of the work that took its slots before
// the time overdue, or nil. A trial of abnormal work is worthwhile if such work holds a quarter of the
// slots. A trial of normal work is worthwhile if overdue work of its kind holds half of them, and
// the law does not know that the backend is full. With few slots it would be a large change.
func (g *Gate) candidate(now, overdue time.Duration) *Work {
	full, few := g.limits.backendFull(now), g.Limit() < firstStep
	var slots [limit.Classes + 1]int
	var first [limit.Classes + 1]*Work
	for w := g.holding.first; w != nil && w.taken <= overdue; w = w.next {
		k := &g.service.kinds.list[w.Kind].parked
		at, parts := limit.Classes, 4
		switch {
		case now < k.next:
			continue
		case g.isNormal(now, w):
			if few || full && (k.now == 0 || k.pause > 0) {
				continue
			}
			at, parts = int(w.Kind), 2
		}
		if first[at] == nil {
			first[at] = w
		}
		if slots[at] += w.Cost; parts*slots[at] >= g.Limit() {
			return first[at]
		}
	}
	return nil
}

// Relieve judges and begins trials, and reports whether slots are free that were not. The owner calls
// Relieve when work finds no free slot, and while work waits.
func (g *Gate) Relieve(now time.Duration) bool {
	p := &g.parking
	if !g.cfg.Parks || p.trying && !g.judge(now) || now < p.next || g.inFlight < g.Limit() {
		return false
	}
	if b := &g.limits.bounds; b.High > 0 || b.Leased > 0 || g.Rule() > LowRules { // somebody bounds what runs
		return false
	}
	after := g.overdueAfter()
	w := g.candidate(now, now-after)
	if w == nil || !g.MayPause() {
		return false
	}
	k := &g.service.kinds.list[w.Kind].parked
	k.step = max(k.step, int32(max(1, g.Limit()/firstStep)))
	p.kind, p.normal, p.own, p.held = w.Kind, g.isNormal(now, w), g.mostly(w.Kind), float64(age(float64(after)))
	p.probes = fewProbes
	if p.normal && int(k.now+k.step) > g.Limit()/4 {
		p.probes = manyProbes
	}
	p.number++
	for free := int(k.step) + g.inFlight - g.Limit(); free > 0 && w != nil && now-w.taken >= after && g.MayPause(); {
		next := w.next
		if w.Kind == p.kind && g.isNormal(now, w) == p.normal {
			free -= w.Cost
			k.now++
			w.trial = p.number
			g.putAside(now, w, isParked)
		}
		w = next
	}
	p.doubted = false
	g.measure(now)
	return g.inFlight < g.Limit()
}

// mostly reports whether most arrivals are of a kind.
func (g *Gate) mostly(kind uint8) bool {
	all := 0.0
	for i := range g.service.kinds.list {
		all += g.service.kinds.list[i].arrivalShare
	}
	return g.service.kinds.list[kind].arrivalShare >= mostOwn*all
}

// measure begins a measurement of the trial.
func (g *Gate) measure(now time.Duration) {
	p := &g.parking
	p.trying, p.began, p.after, p.limit, p.quick, p.slow, p.hold = true, now, g.seq, g.Limit(), 0, 0, 0
}

// isProbe reports whether work counts in the measurement. Work that has taken its slots again does not.
func (p *parking) isProbe(w *Grant) bool {
	return w.Seq > p.after && w.Seq <= p.after+p.probes && w.Start >= p.began && (w.Kind != p.kind || p.own)
}

// enter enters the end of a probe of kind k. Work that failed for its own reasons shows nothing.
func (p *parking) enter(k *kind, at float64, o limit.Outcome) {
	switch slow := k.usual.isSlow(at); {
	case at >= p.held:
		p.hold++
	case o == limit.Failed || o == limit.Unknown || o == limit.Canceled && !slow:
	case slow || o == limit.Overload:
		p.slow++
	default:
		p.quick++
	}
}

// judge decides the trial, and reports whether it has decided.
func (g *Gate) judge(now time.Duration) bool {
	p := &g.parking
	if g.seq == p.after && g.inFlight >= g.Limit() { // the limit has fallen, and nobody got a slot
		if p.trying = false; p.doubted {
			g.refute(now) // the probes of the first measurement still hold the slots
		}
		return true
	}
	if g.Limit() > p.limit { // a higher limit makes probes slow by itself
		g.measure(now)
		return false
	}
	over := now-p.began >= measureMost
	if !over && g.seq-p.after < p.probes && g.inFlight < g.Limit() {
		return false
	}
	hold := p.hold
	for w := g.holding.last; w != nil && w.Seq > p.after; w = w.previous {
		if !p.isProbe(&w.Grant) {
			continue
		}
		at := float64(age(float64(now - w.taken)))
		if at < p.held && !(over && g.service.kinds.list[w.Kind].usual.isSlow(at)) {
			return false // not known yet
		}
		hold++
	}
	ended := p.slow + p.quick
	if ended+hold < fewestProbes && !over {
		switch {
		case g.inFlight < g.Limit() || p.normal || p.slow+hold > 0:
			return false // more may come
		case ended == 0: // work of the parked kind has taken all free slots, as when a crowd of such work waits
			p.trying = false
			if p.blind++; p.blind == mostBlind {
				p.blind, p.next = 0, now+normalPause
			}
			return true
		}
		// All slots are held again, and each probe has ended in its usual time.
	}
	p.trying, p.blind = false, 0
	if ended+hold == 0 { // nobody came
		if p.doubted {
			g.refute(now)
		}
		return true
	}
	k := &g.service.kinds.list[p.kind].parked
	share, usual := float64(p.slow)/max(float64(ended), 1), g.usuallySlow()
	few := usual + slower + 2*math.Sqrt(usual*(1-usual)/max(float64(ended), 1))
	switch {
	case p.normal && (hold > ended || share > few):
		if !p.doubted { // one measurement may be chance
			p.doubted = true
			g.measure(now)
			return false
		}
		g.refute(now)
	case hold > ended, share > usual+muchSlower: // the backend hangs, or is much too slow
		g.unpark(now)
		k.step = 0
		p.pause = min(max(2*p.pause, abnormalPause), hangPause)
		p.next = now + p.pause
	default:
		k.step = int32(min(2*int(k.step), max(int(k.now), g.Limit()/firstStep, 1)))
		p.pause = 0
		if int(k.now) >= 2*g.Limit() { // loaded work of that size would have been seen
			k.pause = 0
		}
	}
	return true
}

// usuallySlow is the usual share of slow work among the kinds of the probes.
func (g *Gate) usuallySlow() float64 {
	slow, all := 0.0, 0.0
	for i := range g.service.kinds.list {
		if k := &g.service.kinds.list[i]; i != int(g.parking.kind) || g.parking.own {
			slow, all = slow+k.arrivalShare*float64(k.usual.slow), all+k.arrivalShare
		}
	}
	if all == 0 {
		return 0
	}
	return slow / all
}

// refute ends a trial of normal work. The kind waits longer each time.
func (g *Gate) refute(now time.Duration) {
	g.unpark(now)
	k := &g.service.kinds.list[g.parking.kind].parked
	k.step = 0
	k.pause = min(max(normalLonger*k.pause, normalPause), normalLongest)
	k.next = now + k.pause
}

// unpark gives the work of the latest trial its slots again.
func (g *Gate) unpark(now time.Duration) {
	for w := g.parked.first; w != nil; {
		next := w.next
		if w.trial == g.parking.number {
			g.Back(now, w)
		}
		w = next
	}
}
