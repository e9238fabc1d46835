package gate

import (
	"math"
	"time"

	"github.com/spillway-go/spillway/internal/places"
	"github.com/spillway-go/spillway/limit"
)

// parking finds work that holds slots and uses nothing scarce: a poll, a wait for a lock, a call of a
// dependency that hangs. Such work looks like work whose own backend hangs or is loaded, so the gate
// runs a trial. When no slot is free, a trial parks some overdue work. Parked work runs on without its
// slots, which go to others, the probes. If the probes end in their usual time, the parked work loads
// nothing scarce. The work stays parked until it ends, and the next trial frees up to twice as many
// slots. If the probes show nothing and hold all slots, the trial goes on with twice as many. Otherwise
// the work of the trial takes its slots again, and the next trial waits. docs/adr/0021 has the reasons.
type parking struct {
	trying      bool
	passed      bool          // the latest decision: the probes ended in their usual time
	doubts      int8          // measurements of the trial in which too many probes were slow
	normal      bool          // the parked work may be long by nature: see isNormal
	kind        uint8         // kind of the parked work, if that is normal
	own         bool          // nearly all work that arrives is of the kinds that the trial parked
	cold        bool          // no usual time is known of any kind
	blind       int8          // trials in a row in which all that started shows nothing
	step        int32         // slots that the next trial frees, at least an eighth of the limit
	number      int32         // of the latest trial
	limit       int           // when the measurement began
	began       time.Duration // when the measurement began
	after       uint64        // latest start before the measurement: later starts are probes
	probes      uint64        // starts that count
	held        float64       // age from which a probe holds its slots as the parked work does
	quick, slow int           // probes that ended as usual, and late
	next        time.Duration // earliest time of the next trial
	pause       time.Duration // after the next trial in which the backend hangs
}

// parked is what trials have found about a kind.
type parked struct {
	now   int32         // pieces of work that are parked
	trial int32         // number of the latest trial that parked work of the kind
	next  time.Duration // earliest time of the next trial
	pause time.Duration // after the latest refuted trial of normal work
	shown int8          // trials that the kind has passed; half of them count after a refuted one
	ended int32         // probes of the kind that ended before they were overdue
	held  int32         // probes of the kind that ended later
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
	mostOwn       = 0.95                   // share of the arrivals from which work of the parked kind counts as probes
	largestStep   = 4                      // part of the limit that a trial frees once others have been served
	firstStep     = 8                      // part of the limit that the first trial frees
	fewProbes     = 16
	manyProbes    = 48              // once a quarter of the limit is parked: the effect of loaded work is visible then
	fewestProbes  = 4               // if no more probes get a slot
	slower        = 0.08            // additional share of slow probes that is no harm, besides two standard errors
	muchSlower    = 0.5             // the same for abnormal work, which is expected to load nothing
	measureMost   = 2 * time.Second // for fewer probes
	abnormalPause = 250 * time.Millisecond
	mostStep      = 1 << 20 // keeps the step finite
	oftenShown    = 6       // passed trials after which a kind is tried also in front of a full backend
	mostShown     = 16
	mostBlind     = 32               // then no trial begins for normalPause
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

// overdueAfter is how long work holds its slots until it is overdue. known reports whether the usual
// time of any kind is known.
func (g *Gate) overdueAfter() (after time.Duration, known bool) {
	quickest := math.Inf(1)
	for i := range g.service.kinds.list {
		if k := &g.service.kinds.list[i]; k.usual.n >= usualKnown && k.arrivalShare >= places.Rare {
			quickest = min(quickest, float64(k.usual.median))
		}
	}
	if math.IsInf(quickest, 1) {
		return overdueAnyway, false
	}
	return max(overdueTimes*time.Duration(edge(int(quickest)+1)), overdueLeast), true
}

// isNormal reports whether work of the kind of w finished of late after about as long as w has run.
func (g *Gate) isNormal(now time.Duration, w *Work) bool {
	return float64(now-w.Start-w.Away) < abnormal*g.service.kinds.list[w.Kind].usual.longest
}

// candidate returns the oldest work that a trial may park now, of the work that took its slots before
// the time overdue, or nil. A trial of abnormal work is worthwhile if such work holds a quarter of the
// slots. A trial of normal work is worthwhile if overdue work of its kind holds half of them, or the
// largest part of three quarters, and the law does not know that the backend is full. With few slots it
// would be a large change.
func (g *Gate) candidate(now, overdue time.Duration) *Work {
	full, few := g.limits.backendFull(now), g.Limit() < firstStep
	var slots [limit.Classes + 1]int
	var first [limit.Classes + 1]*Work
	all, most := 0, 0
	for w := g.holding.first; w != nil && w.taken <= overdue; w = w.next {
		k := &g.service.kinds.list[w.Kind].parked
		at := limit.Classes
		if now < k.next {
			continue
		}
		if g.isNormal(now, w) {
			if few || full && (k.now == 0 || k.pause > normalPause) {
				continue
			}
			at = int(w.Kind)
		}
		if first[at] == nil {
			first[at] = w
		}
		all += w.Cost
		if slots[at] += w.Cost; slots[at] > slots[most] {
			most = at
		}
	}
	if 4*slots[limit.Classes] >= g.Limit() {
		most = limit.Classes
	} else if 2*slots[most] < g.Limit() && 4*all < 3*g.Limit() {
		return nil
	}
	return first[most]
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
	after, known := g.overdueAfter()
	w := g.candidate(now, now-after)
	if w == nil || !g.MayPause() {
		return false
	}
	normal := g.isNormal(now, w)
	if p.blind == 0 || normal != p.normal || normal && w.Kind != p.kind { // otherwise the latest trial goes on
		p.number, p.blind = p.number+1, 0
	}
	p.kind, p.normal, p.cold, p.held = w.Kind, normal, !known, float64(age(float64(after)))
	p.step = max(p.step, int32(max(1, g.Limit()/firstStep)))
	for free := int(p.step) + g.inFlight - g.Limit(); free > 0 && w != nil && now-w.taken >= after && g.MayPause(); {
		next := w.next
		if g.isNormal(now, w) == p.normal && (w.Kind == p.kind || !p.normal) {
			free -= w.Cost
			k := &g.service.kinds.list[w.Kind].parked
			k.now++
			k.trial, w.trial = p.number, p.number
			g.putAside(now, w, isParked)
		}
		w = next
	}
	p.own, p.passed, p.doubts, p.probes = g.isOwn(), false, 0, fewProbes
	if p.normal && int(g.service.kinds.list[p.kind].parked.now) > g.Limit()/4 {
		p.probes = manyProbes
	}
	g.measure(now)
	return g.inFlight < g.Limit()
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
	p.trying, p.began, p.after, p.limit, p.quick, p.slow = true, now, g.seq, g.Limit(), 0, 0
	for i := range g.service.kinds.list {
		k := &g.service.kinds.list[i].parked
		k.ended, k.held = 0, 0
	}
}

// isProbe reports whether work counts in the measurement. Work that has taken its slots again does not.
func (p *parking) isProbe(w *Grant) bool {
	return w.Seq > p.after && w.Seq <= p.after+p.probes && w.Start >= p.began && (!p.normal || p.own || w.Kind != p.kind)
}

// shows reports whether a probe that holds its slots as long as the parked work may show that the
// backend hangs. Work that usually takes as long shows nothing, and neither does work of a kind that has
// never finished, once others have.
func (p *parking) shows(k *kind, at float64) bool {
	if k.parked.trial == p.number {
		return p.own
	}
	return p.cold || k.usual.n >= usualKnown && k.usual.isSlow(at)
}

// enter enters the end of a probe of kind k. Work that failed for its own reasons shows nothing.
func (p *parking) enter(k *kind, at float64, o limit.Outcome) {
	switch slow := k.usual.isSlow(at); {
	case at >= p.held:
		if p.shows(k, at) {
			k.parked.held++
		}
		return
	case o == limit.Failed || o == limit.Unknown || o == limit.Canceled && !slow:
		return
	case slow || o == limit.Overload:
		p.slow++
	default:
		p.quick++
	}
	k.parked.ended++
}

// stuck returns how many probes show that the backend hangs. If other probes end, a kind of which no
// probe ends is of the same sort as the parked work. known reports whether all probes are known.
func (g *Gate) stuck(now time.Duration, over bool) (stuck int, known bool) {
	p := &g.parking
	var held [limit.Classes]int
	for w := g.holding.last; w != nil && w.Seq > p.after; w = w.previous {
		if !p.isProbe(&w.Grant) {
			continue
		}
		k, at := &g.service.kinds.list[w.Kind], float64(age(float64(now-w.taken)))
		if at < p.held && !(over && k.usual.isSlow(at)) {
			return 0, false
		}
		if p.shows(k, at) {
			held[w.Kind]++
		}
	}
	for i := range g.service.kinds.list {
		k := &g.service.kinds.list[i].parked
		if k.ended > 0 || p.quick+p.slow < fewestProbes {
			stuck += held[i] + int(k.held)
		}
	}
	return stuck, true
}

// Trial reports whether a trial is not decided yet, and whether the latest decision was that others
// are served beside the parked work.
func (g *Gate) Trial() (trying, passed bool) { return g.parking.trying, g.parking.passed }

// judge decides the trial, and reports whether it has decided.
func (g *Gate) judge(now time.Duration) bool {
	p := &g.parking
	full := g.inFlight >= g.Limit()
	if g.seq == p.after && full { // the limit has fallen, and nobody got a slot
		if p.trying = false; p.doubts > 0 {
			g.refute(now) // the probes of the first measurement still hold the slots
		}
		return true
	}
	if g.Limit() > p.limit { // a higher limit makes probes slow by itself
		g.measure(now)
		return false
	}
	over := now-p.began >= measureMost
	if !over && g.seq-p.after < p.probes && !full {
		return false
	}
	hold, known := g.stuck(now, over)
	if !known {
		return false
	}
	ended := p.slow + p.quick
	crowded := full && ended+hold < fewestProbes && p.slow+hold == 0 // work that shows nothing has the slots
	if ended+hold < fewestProbes && !over && !crowded {
		return false // more may come
	}
	p.trying = false
	k := &g.service.kinds.list[p.kind].parked
	if ended+hold == 0 {
		switch p.blind++; {
		case p.doubts > 0, crowded && p.normal && k.shown == 0 && int(k.now) >= g.Limit():
			g.refute(now)
		case !crowded:
			p.blind = 0
		case p.blind < mostBlind:
			p.step = min(2*p.step, mostStep)
		default:
			p.blind, p.step, p.next = 0, 0, now+normalPause
		}
		return true
	}
	p.blind = 0
	share, usual := float64(p.slow)/max(float64(ended), 1), g.usuallySlow()
	few := usual + slower + 2*math.Sqrt(usual*(1-usual)/max(float64(ended), 1))
	switch {
	case p.normal && (hold > ended || share > few):
		if p.doubts++; p.doubts <= 1+k.shown/oftenShown { // one measurement may be chance
			g.measure(now)
			return false
		}
		g.refute(now)
	case hold > ended, share > usual+muchSlower: // the backend hangs, or is much too slow
		g.unpark(now)
		p.step = 0
		p.pause = min(max(2*p.pause, abnormalPause), hangPause)
		p.next = now + p.pause
	default:
		p.step = min(2*p.step, int32(max(1, g.Limit()/largestStep)))
		p.pause, p.passed = 0, true
		for i := range g.service.kinds.list {
			if k := &g.service.kinds.list[i].parked; k.trial == p.number {
				k.shown = min(k.shown+1, mostShown)
			}
		}
		if 4*int(k.now) >= g.Limit() { // loaded work of that size would have been seen
			k.pause = 0
		}
	}
	return true
}

// usuallySlow is the usual share of slow work among the kinds of the probes.
func (g *Gate) usuallySlow() float64 {
	slow, all := 0.0, 0.0
	for i := range g.service.kinds.list {
		if k := &g.service.kinds.list[i]; !g.parking.normal || i != int(g.parking.kind) || g.parking.own {
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
	g.parking.blind = 0
	k := &g.service.kinds.list[g.parking.kind].parked
	g.parking.step = 0
	k.shown /= 2
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
