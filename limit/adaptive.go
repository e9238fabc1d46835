package limit

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// block is a run of admissions under one limit.
type block struct {
	first    uint64 // seq of its first
	want     int
	admitted int
	excluded int
	censored int
	logs     []float64
	start    time.Duration
	last     time.Duration // of the last admission
	cSum     float64
	satN     int
}

var UpHold, UpCost, EsZ = 400 * time.Millisecond, 0.02, 2.2

type mode uint8

const (
	startup mode = iota
	hold
	up
	down
)

type Adaptive struct {
	l        float64
	seq      uint64
	draining bool
	b        block
	sigma    float64

	m                 mode
	base, nb          float64
	satRun            int
	own, ownN, ownSum [4]float64 // what a class takes more than another, log
	lost              bool
	trimmed           float64
	goal              float64
	rate              float64 // admissions per second
	hasBase           bool
	gh, nh            float64 // mean log time at the held limit and how many samples stand behind it
	ch                float64

	// probe
	from, fromC  float64
	fromG, fromN float64
	to           float64
	pg, pn, pc   float64
	tries        int
	suspicious   bool
	streak       int
	nextUp       time.Duration
	nextDown     time.Duration
	downEvery    time.Duration

	Log func(string, ...any)
}

func NewAdaptive() *Adaptive {
	a := &Adaptive{l: 8, sigma: 0.3, downEvery: time.Second, nextDown: time.Second}
	a.begin(0)
	return a
}

func (a *Adaptive) Name() string          { return "adaptive" }
func (a *Adaptive) Limit() int            { return max(1, int(a.l)) }
func (a *Adaptive) Decisions() []Decision { return nil }
func (a *Adaptive) State() string         { return [...]string{"startup", "hold", "up", "down"}[a.m] }

func (a *Adaptive) log(f string, v ...any) {
	if a.Log != nil {
		a.Log(f, v...)
	}
}

func (a *Adaptive) se(n float64) float64 { return 1.25 * a.sigma / math.Sqrt(max(n, 1)) }

// generation is how many samples a block takes: what runs at once anyway, and
// enough to say something, if it comes in time.
func (a *Adaptive) generation() float64 {
	want := max(16, a.l, math.Pow(2*a.sigma/0.1, 2))
	if a.rate > 0 {
		want = min(want, max(a.rate*0.7, 12, a.l))
	}
	return min(want, 320)
}

// step is the change that a generation can tell from none.
func (a *Adaptive) step(z, most float64) float64 {
	return min(max(2*z*1.4*a.se(0.8*a.generation()), 0.04), most)
}

func (a *Adaptive) begin(now time.Duration) {
	want := a.generation()
	switch a.m {
	case startup:
		want = min(max(8, a.l), 100)
	case up, down:
		x := a.se(1) * 1.4 / (0.5 * math.Abs(math.Log(a.to/a.from)))
		want = min(max(x*x, 8, a.l/2), want)
	}
	a.b = block{first: a.seq + 1, want: int(want), logs: a.b.logs[:0], start: now}
}

func (a *Adaptive) Admit(at time.Duration, load Load) {
	a.seq++
	if a.draining || a.b.admitted >= a.b.want {
		return
	}
	a.b.admitted++
	a.b.last = at
	a.b.cSum += float64(load.InFlight)
	if load.Queued > 0 || load.InFlight >= a.Limit() {
		a.b.satN++
	}
}

func (a *Adaptive) Observe(s Sample, load Load) {
	now := s.End
	if a.draining && load.InFlight <= a.Limit() {
		a.draining = false
		a.begin(now)
		return
	}
	if a.draining {
		return
	}
	b := &a.b
	if s.Seq >= b.first && s.Seq < b.first+uint64(b.admitted) {
		if s.Outcome == Success || s.Outcome == Censored {
			if s.Outcome == Censored {
				b.censored++
			}
			x := math.Log(max(1, float64(s.End-s.Start)))
			k := s.Class & 3
			if s.Outcome == Success {
				a.learn(k, x)
			}
			b.logs = append(b.logs, x-a.own[k])
		} else {
			b.excluded++
		}
	}
	n := b.admitted - b.excluded
	if b.admitted < b.want {
		if now-b.start < time.Second || n < 8 {
			return
		}
		b.want = b.admitted
	}
	if n < 1 {
		a.begin(now)
		return
	}
	k := (n*8 + 9) / 10
	if len(b.logs) < k {
		return
	}
	slices.Sort(b.logs)
	if len(b.logs) < n && math.Log(max(1, float64(now-b.last)))-slices.Max(a.own[:]) < b.logs[k-1] {
		return
	}
	var sum, sum2 float64
	for _, x := range b.logs[:k] {
		sum += x
		sum2 += x * x
	}
	g := sum / float64(k)
	if b.last > b.start && b.admitted > 4 {
		a.rate = float64(b.admitted-1) / (b.last - b.start).Seconds()
	}
	sd := math.Sqrt(max(1e-6, sum2/float64(k)-g*g))
	a.sigma += 0.2 * (sd - a.sigma)
	if 4*b.censored >= n {
		a.drown(now, g, float64(k), b.cSum/float64(b.admitted))
	} else {
		a.judge(now, g, float64(k), b.cSum/float64(b.admitted), float64(b.satN)/float64(b.admitted))
	}
	if !a.draining {
		a.begin(now)
	} else if load.InFlight <= a.Limit() {
		a.draining = false
		a.begin(now)
	}
}

const ownNeed = 48

// learn compares the classes. Where one takes much longer of itself, its samples
// are judged net of that: else a change in the mix would look like a change in
// the backend.
func (a *Adaptive) learn(k uint8, x float64) {
	if a.ownN[k] >= ownNeed {
		return
	}
	a.ownN[k]++
	a.ownSum[k] += x
	if a.ownN[k] < ownNeed {
		return
	}
	for r := range a.ownN {
		if uint8(r) != k && a.ownN[r] >= ownNeed {
			diff := (a.ownSum[k]-a.ownSum[r])/ownNeed + a.own[r]
			if math.Abs(diff) > max(0.7, 4*a.sigma*math.Sqrt(2./ownNeed)) {
				a.own[k] = diff
				a.hasBase, a.gh, a.nh = false, 0, 0
			}
			return
		}
	}
}

func (a *Adaptive) set(l float64, m mode) {
	l = math.Round(min(max(l, 1), 1e5))
	if l < a.l {
		a.draining = true
	}
	a.l = l
	a.m = m
}

func (a *Adaptive) probe(m mode, to, c, g, n float64) {
	a.from, a.fromC, a.fromG, a.fromN, a.to = a.l, c, g, n, to
	a.pg, a.pn, a.pc, a.tries = 0, 0, 0, 0
	a.set(to, m)
}

// flat enters a measurement of the latency without a queue.
func (a *Adaptive) flat(g, n float64) {
	most := max(160, math.Pow(1.25*a.sigma/0.04, 2))
	w := n / min(a.nb+n, most)
	a.base += w * (g - a.base)
	a.nb = min(a.nb+n, most)
}

// ref is the latency to compare a probe with: what was measured at the held
// limit, and the baseline where that is the same.
func (a *Adaptive) ref(g, n float64) (float64, float64) {
	if math.Abs(g-a.base) < 2*math.Hypot(a.se(n), a.se(a.nb)) && a.nb > 0 {
		return (g*n + a.base*a.nb) / (n + a.nb), n + a.nb
	}
	return g, n
}

// drown acts on a block that mostly ran into its deadlines: what its latency
// would have been is not known, only that too much runs.
func (a *Adaptive) drown(now time.Duration, g, n, c float64) {
	a.log("%6.2fs drowning L %.1f c %.1f", now.Seconds(), a.l, c)
	a.hasBase, a.lost = false, true
	a.gh, a.nh, a.streak = 0, 0, 0
	a.nextUp, a.nextDown = now, now
	if c >= 0.75*a.l || a.m == up {
		a.set(max(1, min(a.l, c)/2), hold)
	}
}

func (a *Adaptive) judge(now time.Duration, g, n, c, sat float64) {
	saturated := sat > 0.5
	a.log("%6.2fs %-7s L %5.1f c %5.1f sat %.2f n %3.0f g %.3f base %.3f gh %.3f se %.3f", now.Seconds(), a.State(), a.l, c, sat, n, g, a.base, a.gh, a.se(n))
	if !a.hasBase {
		a.base, a.nb, a.hasBase = g, n, true
	}
	se := a.se(n)
	if saturated {
		a.satRun++
	} else {
		a.satRun = 0
	}
	switch a.m {
	case startup:
		e := g - a.base
		if e < 0 {
			a.flat(g, n)
			e = 0
		}
		switch {
		case e > max(0.15, 2*se): // the last doubling only queued
			a.gh, a.nh, a.ch = 0, 0, 0
			a.suspicious = true
			a.probe(down, max(1, min(a.l, c)*math.Exp(-min(e, 0.7))), c, g, n)
		case saturated:
			a.set(a.l*2, startup)
		}
		return
	case up:
		a.pg = (a.pg*a.pn + g*n) / (a.pn + n)
		a.pc = (a.pc*a.pn + c*n) / (a.pn + n)
		a.pn += n
		a.tries++
		d := a.pg - a.fromG
		delta := math.Log(max(a.pc, 1) / max(a.fromC, 1))
		if delta < 0.3*math.Log(a.to/a.from) {
			a.m = hold // load is gone: nothing was learned
			a.l = a.from
			a.streak = 0
			return
		}
		s := math.Hypot(a.se(a.pn), a.se(a.fromN))
		margin := 0.5*delta - d
		switch {
		case d > 2.5*delta+3*s && d > 0.3: // more than the step can have done: the backend changed
			a.streak, a.suspicious = 0, true
			c0 := min(a.from, max(a.fromC, 1))
			a.log("   changed under the probe")
			a.m = hold
			a.l = a.from
			if a.l > 1 {
				a.probe(down, min(c0*math.Exp(-min(d, 0.7)), math.Round(c0)-1), a.fromC, a.pg, a.pn)
			}
		case margin > s || a.tries >= 3 && margin > 0.3*s:
			a.streak++
			a.trimmed = 0
			a.gh, a.nh, a.ch = a.pg, a.pn, a.pc
			if a.pg < a.base {
				a.flat(a.pg, a.pn)
			}
			a.m = hold
			a.nextUp = now
			a.log("   up accepted %.1f", a.l)
			a.next(now, a.gh, a.nh, a.ch)
		case margin < -s || a.tries >= 3:
			a.streak = 0
			knee := a.pc * math.Exp(-max(d+s, 0))
			a.set(min(max(a.from, knee), a.to), hold)
			spent := (now - a.b.start) * time.Duration(a.tries)
			lost := 1 - math.Exp(-max(d-delta, 0)) // what the probe cost in throughput
			a.nextUp = now + min(max(UpHold, time.Duration(lost*float64(spent)/UpCost), 2*(now-a.b.start)), 3*time.Second)
			a.log("   up refused, back to %.1f", a.l)
		}
		return
	case down:
		a.pg = (a.pg*a.pn + g*n) / (a.pn + n)
		a.pc = (a.pc*a.pn + c*n) / (a.pn + n)
		a.pn += n
		a.tries++
		delta := math.Log(max(a.fromC, 1) / max(a.pc, 1))
		fell := a.fromG - a.pg
		s := math.Hypot(a.se(a.pn), a.se(a.fromN))
		margin := fell - 0.5*delta
		if math.Abs(margin) < 1.5*s && a.tries < 3 {
			return
		}
		if margin > 0.7*s {
			a.gh, a.nh, a.ch = a.pg, a.pn, a.pc
			a.m = hold
			// Little's law: this much was running, the rest was waiting.
			knee := a.fromC * math.Exp(-(fell + 0.5*s))
			a.log("   down kept %.1f knee %.1f", a.l, knee)
			a.goal = a.fromC * math.Exp(-fell/1.5)
			if knee > a.l {
				a.l = math.Round(min(knee, a.from))
			}
			a.downEvery = 500 * time.Millisecond
			known := a.suspicious && math.Abs(a.pg-a.base) < max(0.06, 2*a.se(a.pn))
			if !known && a.l >= 2 {
				a.base, a.nb = a.pg, a.pn
				a.suspicious = false
				a.probe(down, min(a.l-1, a.l*0.7), a.pc, a.pg, a.pn)
			} else {
				a.nextUp = now
				a.nextDown = now + a.downEvery
				a.next(now, a.gh, a.nh, a.ch)
			}
			return
		}
		a.log("   down refused, back to %.1f", a.from)
		spent := (now - a.b.start) * time.Duration(a.tries)
		if a.suspicious || math.Abs(a.pg-a.base) > max(0.12, 3*a.se(a.pn)) {
			a.base, a.nb = (a.pg*a.pn+a.fromG*a.fromN)/(a.pn+a.fromN), a.pn+min(a.fromN, a.pn)
			a.downEvery = 500 * time.Millisecond
		} else {
			a.flat(a.pg, a.pn)
			a.downEvery = max(min(3*a.downEvery, 15*time.Second), 15*spent)
		}
		a.nextDown = now + a.downEvery
		a.l = a.from
		a.gh, a.nh = 0, 0
		a.m = hold
		a.nextUp = now
		return
	}
	// hold
	if a.nh == 0 || math.Abs(math.Log(max(c, 1)/max(a.ch, 1))) > 0.15 {
		a.gh, a.nh, a.ch = g, n, c
	} else {
		cap := 16 * n
		w := n / min(a.nh+n, cap)
		a.gh += w * (g - a.gh)
		a.ch += w * (c - a.ch)
		a.nh = min(a.nh+n, cap)
	}
	e, es := g-a.base, a.gh-a.base
	switch {
	case a.lost && c >= 0.75*a.l && a.l > 1:
		a.lost, a.suspicious = false, false
		a.probe(down, min(a.l-1, a.l*0.6), c, g, n)
		return
	case !saturated && c < 0.75*a.l:
		a.lost = false
		a.flat(g, n)
		a.streak = 0
		return
	case e > 0.15+3*se:
		a.suspicious = true
		from := min(a.l, max(c, 1))
		to := max(1, from*math.Exp(-min(e, 0.7)))
		if a.l > 1 {
			a.probe(down, min(to, math.Round(from)-1), c, g, n)
		}
		return
	case es > max(0.03, EsZ*math.Hypot(a.se(a.nh), a.se(a.nb))) && a.l > 1:
		from := min(a.l, max(c, 1))
		to := min(from*math.Exp(-es/1.25), math.Round(from)-1)
		a.trimmed += math.Log(from / to)
		if es < 0.15 && a.trimmed < 0.2 { // a small excess: a small cut
			a.log("   trimmed to %.1f", to)
			a.set(to, hold)
			a.gh, a.nh = 0, 0
			a.nextUp = now + UpHold
			return
		}
		a.trimmed = 0
		a.suspicious = true
		a.probe(down, min(to, from*math.Exp(-max(min(es, 0.7), 0.2))), a.ch, a.gh, a.nh)
		return
	case !saturated:
		a.streak = 0
		return
	}
	a.next(now, a.gh, a.nh, a.ch)
}

// next decides what to try from a held, saturated limit.
func (a *Adaptive) next(now time.Duration, g, n, c float64) {
	switch {
	case now >= a.nextDown && a.l >= 2 && a.streak == 0 && a.satRun > 3:
		a.suspicious = false
		a.probe(down, min(a.l-1, a.l*math.Exp(-max(0.2, a.step(1.5, 0.5)))), c, g, n)
	case now >= a.nextUp:
		step := min(a.step(1, 1)*math.Pow(2, float64(a.streak)), 1)
		rg, rn := a.ref(g, n)
		to := a.l * (1 + step)
		if a.goal > 1.05*a.l && a.goal < 1.7*a.l {
			to = a.goal
		}
		a.goal = 0
		a.probe(up, max(a.l+1, to), c, rg, rn)
	}
}

var _ = fmt.Sprint
