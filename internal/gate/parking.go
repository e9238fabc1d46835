package gate

import (
	"math"
	"time"

	"github.com/spillway-go/spillway/internal/places"
	"github.com/spillway-go/spillway/limit"
)

type parking struct {
	trying            bool
	number            int32         // of the latest trial
	kind              uint8         // kind of the work that the trial has parked
	normal            bool          // the work may be slow by nature, and load the backend
	own               bool          // work of the kind counts as probes
	began             time.Duration // when the latest trial began
	after             uint64        // latest start before the trial: later starts are its probes
	limit             int           // when the trial began
	probes            uint64        // starts after it that the trial counts
	overdue           float64       // age from which a probe holds its slots like the parked work
	quick, slow, held int           // probes that ended: soon, late, and overdue
	next              time.Duration // earliest time of the next trial of any kind
	pause             time.Duration // after the next trial in which the backend hangs
}

// parked is what trials have found about a kind of work.
type parked struct {
	now   int32         // pieces of work that are parked
	step  int32         // slots that the next trial frees; 0: an eighth of the limit
	next  time.Duration // earliest time of the next trial
	pause time.Duration // after the next refuted trial
}

// usual is the usual time of a kind of work.
type usual struct {
	n       int32
	median  float32 // of the ages at which work ended: see age
	slow    float32 // share of the work that took longer than slowAges beyond the median
	longest float64 // longest time in which work finished of late, in nanoseconds
}

// finished enters the time in which work finished. passed is the time since work of the kind last ended.
func (u *usual) finished(took, passed float64) {
	u.longest = max(took, u.longest-(u.longest-took)*min(passed/float64(usualMemory), 1))
}

const (
	overdueTimes  = 8                      // usual times of the quickest kind after which work is overdue
	overdueLeast  = 100 * time.Millisecond // work is not overdue sooner
	overdueAnyway = time.Second            // work is overdue while no usual time is known
	usualKnown    = 5                      // ends behind a usual time
	usualMemory   = 2 * time.Minute        // while work is parked
	medianStep    = 2 * agesPerOctave
	mostOwn       = 0.8           // share of the arrivals up to which work of the parked kind is no probe
	slowAges      = agesPerOctave // slow work takes twice the usual time
	fewestProbes  = 4
	abnormal      = 2 // longest times in which work of a kind finished of late, after which the work is abnormal
	fewProbes     = 16
	manyProbes    = 48   // once a quarter of the limit is parked: the effect of loaded work is then visible
	slower        = 0.05 // additional share of slow probes that refutes a trial
	trialMost     = 2 * time.Second
	firstPause    = time.Second
	hangPause     = 30 * time.Second // longest pause of all kinds
	kindPause     = 5 * time.Minute  // longest pause of one kind
	firstStep     = 8                // part of the limit
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

// usualWeight is the weight of an end of work of kind k. While work is parked, the usual time changes
// slowly: trials compare with the time before.
func (g *Gate) usualWeight(now time.Duration, k *kind) float64 {
	if g.parked.n > 0 {
		return min(float64(now-k.last)/float64(usualMemory), 1/serviceSpan)
	}
	return 1 / serviceSpan
}

func (u *usual) isSlow(at float64) bool {
	if u.n < usualKnown {
		return at > float64(age(float64(overdueLeast)))
	}
	return at > float64(u.median+slowAges)
}

// overdueAfter is how long work holds its slots until it is overdue.
func (g *Gate) overdueAfter() time.Duration {
	least := math.Inf(1)
	for i := range g.service.kinds.list {
		if k := &g.service.kinds.list[i]; k.usual.n >= usualKnown && k.arrivalShare >= places.Rare {
			least = min(least, float64(k.usual.median))
		}
	}
	if math.IsInf(least, 1) {
		return overdueAnyway
	}
	return max(overdueTimes*time.Duration(edge(int(least)+1)), overdueLeast)
}

// Relieve judges and begins trials, and reports whether slots are free that were not. The owner calls
// Relieve when work finds no free slot, and while work waits.
func (g *Gate) Relieve(now time.Duration) bool {
	p := &g.parking
	if !g.cfg.Parks || p.trying && !g.judge(now) || now < p.next || g.Rule() > LowRules || g.inFlight < g.Limit() || !g.MayPause() {
		return false
	}
	after := g.overdueAfter()
	overdue := now - after
	young := 0 // slots of work that is not overdue
	for w := g.holding.last; w != nil && w.taken > overdue; w = w.previous {
		young += w.Cost
	}
	w := g.holding.first
	for w != nil && w.taken <= overdue && g.isNormal(now, w) && now < g.service.kinds.list[w.Kind].parked.next {
		w = w.next
	}
	if w == nil || w.taken > overdue {
		return false
	}
	k := &g.service.kinds.list[w.Kind].parked
	least := max(1, g.Limit()/firstStep)
	k.step = int32(min(max(int(k.step), least), max(young, least)))
	*p = parking{
		trying: true, number: p.number + 1, kind: w.Kind, normal: g.isNormal(now, w), own: g.mostly(w.Kind), began: now, after: g.seq,
		limit: g.Limit(), overdue: float64(age(float64(after))), probes: fewProbes, next: p.next, pause: p.pause,
	}
	if int(k.now+k.step) > g.Limit()/4 {
		p.probes = manyProbes
	}
	for free := int(k.step) + g.inFlight - g.Limit(); free > 0 && w != nil && w.taken <= overdue && g.MayPause(); {
		next := w.next
		if w.Kind == p.kind && g.isNormal(now, w) == p.normal {
			free -= w.Cost
			k.now++
			w.trial = p.number
			g.putAside(now, w, isParked)
		}
		w = next
	}
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

// isNormal reports whether work of the kind finished of late after about as long as w has run.
func (g *Gate) isNormal(now time.Duration, w *Work) bool {
	return float64(now-w.Start-w.Away) < abnormal*g.service.kinds.list[w.Kind].longest
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

// probe enters the end of work that started during a trial.
func (p *parking) probe(seq uint64, of uint8, k *kind, at float64, o limit.Outcome) {
	if seq > p.after+p.probes || of == p.kind && !p.own {
		return
	}
	switch slow := k.usual.isSlow(at); {
	case at >= p.overdue:
		p.held++
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
		p.trying = false
		return true
	}
	if g.Limit() > p.limit { // a higher limit makes probes slow by itself: measure anew
		p.began, p.after, p.limit, p.quick, p.slow, p.held = now, g.seq, g.Limit(), 0, 0, 0
		return false
	}
	over := now-p.began >= trialMost
	if !over && g.seq-p.after < p.probes && g.inFlight < g.Limit() {
		return false
	}
	held := p.held
	for w := g.holding.last; w != nil && w.Seq > p.after; w = w.previous {
		switch {
		case w.Seq > p.after+p.probes || w.Kind == p.kind && !p.own:
		case float64(age(float64(now-w.taken))) >= p.overdue:
			held++
		case over && g.service.kinds.list[w.Kind].usual.isSlow(float64(age(float64(now-w.taken)))):
			held++
		default:
			return false // not known yet
		}
	}
	ended := p.slow + p.quick
	if n := ended + held; n < fewestProbes && !over {
		return false
	}
	p.trying = false
	expected, all := 0.0, 1e-9
	for i := range g.service.kinds.list {
		if k := &g.service.kinds.list[i]; i != int(p.kind) || p.own {
			expected, all = expected+k.arrivalShare*float64(k.usual.slow), all+k.arrivalShare
		}
	}
	expected /= all
	k := &g.service.kinds.list[p.kind].parked
	share, n := float64(p.slow)/max(float64(ended), 1), max(float64(ended), 1)
	switch {
	case ended+held == 0: // nobody came
	case held > ended: // the backend hangs
		g.unpark(now)
		k.step = 0
		p.pause = min(max(2*p.pause, firstPause/4), hangPause)
		p.next = now + p.pause
	case p.normal && share > expected+slower+2*math.Sqrt(expected*(1-expected)/n):
		g.unpark(now)
		k.step = 0
		k.pause = min(max(4*k.pause, firstPause), kindPause)
		k.next = now + k.pause
	case !p.normal && share > expected+0.5:
		k.step = 0
		p.next = now + firstPause
	default:
		k.step = int32(min(2*int(k.step), max(int(k.now), g.Limit()/firstStep, 1)))
		p.pause = 0
	}
	return true
}
