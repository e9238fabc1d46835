// Package processors sheds load when processors are what is short.
//
// With few processors a handler that computes runs to its end, so hardly anything is in flight
// inside a middleware, and latency there is flat. The queue stands in front of the door: in
// the run queues of the scheduler, in requests that nobody has read. A limit of concurrency
// cannot see that queue and cannot shorten it. So a share of what arrives is shed, before
// anything is done for it.
//
// The share follows from the wait for a processor, as in the PIE controller of RFC 8033. PIE
// adds to a probability of dropping; here the share that is admitted is multiplied, so that the
// loop is equally fast at one and a half and at ten times the capacity.
package processors

import (
	"math"
	"time"
)

// Levels is how many priorities there are. Level 0 is the most important.
const Levels = 4

const (
	// Every is the time between two readings. It is no divisor of 100 ms, the period of quotas of
	// processor time, so that not all readings fall on their ends.
	Every = 40 * time.Millisecond
	// stale is the age from which a reading says nothing any more.
	stale = time.Second
	// The ratio of waits to queue lengths is remembered for memory, what arrives for recent; in seconds.
	memory = 2.
	recent = 0.5

	// A goroutine that computes is stopped after 10 ms if others wait. With a quota of the operating
	// system a slice may take twice as long and more. What is longer is a pause of the whole process.
	longestSlice = 0.025
	// waits that end in so many readings after a gap began before it.
	afterGap = 2

	// The wait that is aimed at is a quarter of what work takes, within these bounds. The collector, a
	// quota or a neighbour on the same processors make goroutines wait for 20 to 100 ms, and nobody
	// is late for that.
	aimPart  = 0.25
	leastAim = 0.1
	mostAim  = 0.25

	// The admitted share a obeys d ln(a)/dt = -pull*error - brake*d(wait)/dt. The wait grows by
	// load*a-1 seconds a second, so around the right share ln(a) acts on the wait with a gain of one,
	// and with these numbers the loop is damped and answers within half a second.
	pull      = 2.
	brake     = 4.
	mostError = 3.   // of the aim
	relief    = 0.25 // a wait below this part of the aim: the overload is over
	opening   = 5.   // then ln(a) rises by so much a second

	leastShare = 1. / 64

	// By Little's law arrivals make the queue if those of a second, times the wait, are about as many
	// as wait. If they are fewer, either far more comes than passes the door, or the queue is made by what
	// does not arrive, such as a batch in the background. Then three of four are shed at once, for a
	// trial. Where three of four are shed, soon the wait is clearly shorter, and in any case far more
	// passes the door, because a refusal takes little of a processor. If not, shedding rests.
	made       = 2. / 3
	trialShare = 1. / 4
	trial      = 500 * time.Millisecond
	shorter    = 0.8
	morePass   = 2.
	longTrial  = 2 * time.Second
	leastRest  = 4 * time.Second
	mostRest   = time.Minute
)

// Reading is what the runtime says, and what happened at the door since the reading before.
type Reading struct {
	At       time.Duration
	Runnable int // goroutines that wait for a processor now
	// Waited and Squares are the sum of the waits that have ended, in seconds, and the sum of
	// their squares. They may be of a sample.
	Waited, Squares float64
	Door
}

// Door is what happened at the limiters that shed.
type Door struct {
	Arrivals [Levels]float64 // since the reading before
	Enforced float64         // of these, what is shed when its share says so
	InFlight int             // work that is let in: it may wait for a processor too, and is a limiter's
	Service  time.Duration   // what work takes in the mean
}

// Control turns readings into shares. It is pure: no clock, no lock. The zero value admits all.
type Control struct {
	at     time.Duration
	began  bool
	gap    int     // readings until the waits that are read began after the gap
	log    float64 // of the admitted share; zero: all
	wait   float64 // seconds; of the last two readings the lower
	latest float64 // seconds, by the last reading
	length float64 // of the queue at the door, by the last reading
	aim    float64 // seconds

	waited, squares   float64         // of waits, fading
	lengths, lengths2 float64         // of what was runnable, as often as it was read, fading
	mix               [Levels]float64 // of arrivals, fading
	enforced          float64         // of these
	time              float64         // in which they came, fading

	// Of the present shedding: the wait and the arrivals a second when it began, whether it has
	// shown that it helps, and since when that is looked at. Shedding rests until resting, each
	// time for longer.
	waitBefore, rateBefore float64
	proven                 bool
	since                  time.Duration
	resting, rest          time.Duration
}

// Read enters a reading.
func (c *Control) Read(r Reading) {
	dt := (r.At - c.at).Seconds()
	if !c.began || dt > stale.Seconds() || dt <= 0 {
		*c = Control{at: r.At, began: true, gap: afterGap, resting: c.resting, rest: c.rest, aim: leastAim}
		return
	}
	c.at = r.At
	before := c.wait
	c.measure(r, dt)
	c.decide(r.At, dt, before)
}

// measure finds out how long a goroutine waits for a processor that becomes runnable now:
// the goroutines before it, times what each of them takes. What each takes is known from the
// waits that have ended and from how many waited meanwhile. Both means are weighted by size:
// most goroutines wait for nothing, because they are woken by the one that hands them its
// processor, and a request is not among those. Work that was let in is left out: how much
// of that there is the limiter decides, who sees it.
func (c *Control) measure(r Reading, dt float64) {
	if c.gap > 0 {
		c.gap--
		r.Waited, r.Squares = 0, 0
	}
	fade, n := math.Exp(-dt/memory), float64(r.Runnable)
	c.waited, c.squares = c.waited*fade+r.Waited, c.squares*fade+r.Squares
	c.lengths, c.lengths2 = c.lengths*fade+n*dt, c.lengths2*fade+n*n*dt
	fade = math.Exp(-dt / recent)
	for i, k := range r.Arrivals {
		c.mix[i] = c.mix[i]*fade + k
	}
	c.enforced, c.time = c.enforced*fade+r.Enforced, c.time*fade+dt
	each := 0.
	if c.waited > 0 {
		each = c.squares / c.waited
		if c.lengths > 0 {
			each /= max(c.lengths2/c.lengths, 1)
		}
	}
	c.length = max(n-float64(r.InFlight), 0)
	now := min(each, longestSlice) * c.length
	c.wait, c.latest = min(now, c.latest), now
	c.aim = min(max(aimPart*r.Service.Seconds(), leastAim), mostAim)
}

// arrivals returns how many came of late, and how many a second.
func (c *Control) arrivals() (n, rate float64) {
	for _, k := range c.mix {
		n += k
	}
	return n, n / max(c.time, Every.Seconds())
}

// decide changes the share.
func (c *Control) decide(now time.Duration, dt, before float64) {
	n, rate := c.arrivals()
	excess := (c.wait - c.aim) / c.aim
	switch {
	case now < c.resting || c.enforced < n/2: // who sheds is too few of them
		c.log = min(c.log+opening*dt, 0)
	case c.log == 0 && excess <= 0:
		return
	case c.log == 0:
		c.waitBefore, c.rateBefore, c.since, c.proven = c.wait, rate, now, false
		if c.shed(excess, dt, before); rate*c.latest < made*c.length {
			c.log = math.Log(trialShare)
		}
		return
	case c.wait < relief*c.aim:
		if c.log = min(c.log+opening*dt, 0); c.log == 0 {
			c.rest = 0
		}
	case c.log > math.Log(trialShare) || c.proven || now-c.since >= trial:
		c.shed(excess, dt, before)
	}
	c.judge(now, rate)
}

// shed lets the share follow the wait.
func (c *Control) shed(excess, dt, before float64) {
	c.log -= pull*min(excess, mostError)*dt + brake*(c.wait-before)
	c.log = min(max(c.log, math.Log(leastShare)), 0)
}

// judge gives up where only a quarter is admitted, or less, and that does not help.
func (c *Control) judge(now time.Duration, rate float64) {
	switch {
	case c.log > math.Log(trialShare)+1e-9:
		c.since = now
	case now-c.since < trial || rate >= morePass*c.rateBefore:
	case c.wait <= shorter*c.waitBefore:
		if c.proven = true; now-c.since >= longTrial {
			c.giveUp(now)
		}
	default:
		c.giveUp(now)
	}
}

// giveUp ends shedding for a while, a longer one each time.
func (c *Control) giveUp(now time.Duration) {
	c.rest = min(max(2*c.rest, leastRest), mostRest)
	c.log, c.resting = 0, now+c.rest
}

// Wait is how long a request waits for a processor before it can ask anything.
func (c *Control) Wait() time.Duration { return time.Duration(math.Round(c.wait * 1e9)) }

// Aim is the wait above which is shed.
func (c *Control) Aim() time.Duration { return time.Duration(c.aim * float64(time.Second)) }

// Share is the part of all arrivals that is admitted, above 0; 1: all.
func (c *Control) Share() float64 { return math.Exp(c.log) }

// Would is the part of all arrivals that shedding would admit, as a guess for what nobody sheds:
// how much too much comes cannot be seen while all of it is late.
func (c *Control) Would() float64 {
	if c.wait <= c.aim {
		return 1
	}
	return max(c.aim/c.wait, 0.5)
}

// Shares returns the share of each level that is admitted. The least important is shed first.
func (c *Control) Shares() (of [Levels]float64) {
	total, left, before := 0., c.Share(), 1.
	for _, n := range c.mix {
		total += n
	}
	for i, n := range c.mix {
		switch {
		case total <= 0: // not known
			of[i] = left
			continue
		case n == 0:
			of[i] = before // there is none, or there was none
			continue
		}
		part := n / total
		of[i] = max(min(left/part, 1), leastShare)
		left, before = max(left-part, 0), of[i]
	}
	return of
}
