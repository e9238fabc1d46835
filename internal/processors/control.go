// Package processors sheds load while processors are short.
//
// With few processors, a handler that computes runs to its end before the next request is read.
// Hardly any work is in flight inside a middleware, and latency there is flat. The queue stands
// in front of the limiter, which is the door of the process: in the run queues of the scheduler, and
// in sockets that no goroutine has read. A limit of concurrency neither sees nor shortens that
// queue. So a share of the arrivals is shed at the door, before any other work is done for them.
//
// The share follows from the wait for a processor, as in the PIE controller of RFC 8033. PIE adds
// to the probability of dropping. The controller here multiplies the admitted share, so the loop
// is equally fast at one and a half and at ten times the capacity.
package processors

import (
	"math"
	"time"

	"github.com/spillway-go/spillway/internal/priority"
)

// Levels is the number of priorities. Level 0 is the most important.
const Levels = priority.Levels

const (
	// Every is the time between two readings. Quotas of processor time have a period of 100 ms. Every
	// does not divide that period, so readings fall on all parts of the period.
	Every = 40 * time.Millisecond
	// stale is the age from which a reading is ignored.
	stale = time.Second
	// memory is how long the ratio of waits to queue lengths is remembered, in seconds.
	memory = 2.
	// recent is how long arrivals are remembered, in seconds.
	recent = 0.5

	// longestSlice is the longest time, in seconds, that one goroutine is assumed to compute before
	// the next one runs on the same processor. The scheduler stops a goroutine after 10 ms if others
	// wait. A quota of the operating system may double these 10 ms. A longer time is a pause of the
	// whole process.
	longestSlice = 0.025
	// afterGap is the number of readings after a gap whose waits may have begun before the gap.
	afterGap = 2

	// The aim is the wait above which arrivals are shed: the part aimPart of the mean service time,
	// within leastAim and mostAim, in seconds. The garbage collector, a quota or another process on
	// the same processors makes goroutines wait for 20 to 100 ms, which makes no request late.
	aimPart  = 0.25
	leastAim = 0.1
	mostAim  = 0.25

	// The admitted share a obeys d ln(a)/dt = -pull*error - brake*d(wait)/dt, where error is the
	// excess of the wait over the aim, in aims. The wait grows by load*a-1 seconds per second. So
	// around the right share ln(a) acts on the wait with a gain of one. With these values the loop is
	// damped and settles within half a second.
	pull      = 2.
	brake     = 4.
	mostError = 3.   // largest error, in aims
	relief    = 0.25 // part of the aim; below that wait the overload is over
	opening   = 5.   // rise of ln(a) per second after an overload

	leastShare = 1. / 64

	// leastArrivals is the number of recent arrivals from which arrivals can be the cause of a wait.
	leastArrivals = 2
	// fewest is the number of recent arrivals of a level below which the level counts as absent.
	fewest = 1e-6

	// By Little's law, arrivals make the queue if their rate times the wait is about the length of the
	// queue. A smaller product has four possible causes. Far more requests arrive than pass the door.
	// Admitted work comes back to the queue, after a slice of computing or a sleep. Something else makes the
	// queue, such as a batch job. Or the machine has stalled, and nothing passed the door meanwhile; then
	// the queue drains soon. If the wait remains at trialFrom or above, a trial decides: three of four
	// arrivals are shed at once. If arrivals make the queue, the wait soon becomes clearly shorter, or far
	// more arrivals pass the door, because a refusal takes little processor time. What was admitted before
	// the trial waits once more, perhaps twice, so a trial lasts for two waits. If the wait is clearly
	// longer at the end, the queue was still growing, and the trial begins anew. Otherwise shedding pauses,
	// at most until the wait has doubled.
	caused     = 3. / 4
	trialFrom  = 2. // in aims
	trialShare = 1. / 4
	doubt      = 500 * time.Millisecond // how long the wait remains before a trial
	leastTrial = 500 * time.Millisecond
	shorter    = 0.8             // part of the earlier wait that is clearly shorter
	grown      = 1.25            // multiple of the earlier wait that is clearly longer
	doubled    = 2.              // multiple of the wait at the beginning of a pause that ends the pause
	morePass   = 2.              // multiple of the earlier rate of arrivals that is far more
	longTrial  = 2 * time.Second // time after which only Little's law shows that shedding helps
	vainPart   = 8               // least length of a pause, in lengths of the shedding before, which was in vain
	mostRest   = time.Minute     // length of the longest pause
)

// Reading holds figures of the runtime, and the events at the door since the previous reading.
type Reading struct {
	At         time.Duration
	Processors int     // GOMAXPROCS; 0 counts as 1
	Runnable   int     // goroutines that wait for a processor now
	Waited     float64 // sum of the waits that have ended, in seconds; a sample is enough
	Squares    float64 // sum of the squares of the waits in Waited
	Door
}

// Door holds the events at the limiters that shed.
type Door struct {
	Arrivals [Levels]float64 // since the previous reading
	Enforced float64         // arrivals that may be shed: not in a dry run
	Service  time.Duration   // mean service time
}

// Control turns readings into shares. A Control has no clock and no lock. The zero value admits all
// arrivals.
type Control struct {
	at     time.Duration
	began  bool
	gap    int     // readings until all waits began after the gap
	log    float64 // logarithm of the admitted share; zero: all
	wait   float64 // the lower of the last two readings, in seconds
	latest float64 // the wait by the last reading, in seconds
	length float64 // goroutines that wait for a processor, by the last reading
	aim    float64 // in seconds

	waited, squares   float64         // fading sums of waits and of their squares
	lengths, lengths2 float64         // fading sums of queue lengths and of their squares
	mix               [Levels]float64 // fading sum of arrivals of each level
	enforced          float64         // fading sum of arrivals that may be shed
	time              float64         // fading sum of the time behind mix

	calm time.Duration // when there was last no reason for a trial

	waitBefore float64       // wait when the shedding or the present trial began, in seconds
	rateBefore float64       // arrivals per second when the shedding began
	proven     bool          // the trial has shown that shedding helps
	since      time.Duration // start of the trial

	resting time.Duration // while shedding, when the shedding began; else end of the latest pause, unless the wait doubles before
	rest    time.Duration // length of the latest pause; each pause is longer
	vain    float64       // wait when shedding was given up, in seconds
}

// Read enters a reading.
func (c *Control) Read(r Reading) {
	dt := (r.At - c.at).Seconds()
	if !c.began || dt > stale.Seconds() || dt <= 0 {
		*c = Control{at: r.At, began: true, gap: afterGap, resting: c.resting, rest: c.rest, vain: c.vain, aim: leastAim}
		return
	}
	c.at = r.At
	before := c.wait
	c.measure(r, dt)
	c.decide(r.At, dt, before)
}

// measure estimates how long a goroutine that becomes runnable now waits for a processor: the
// number of goroutines before it, times the time that each of them takes. The time follows from
// the waits that have ended and the number of goroutines that waited meanwhile. Both means are
// weighted by size: most goroutines hardly wait, because the goroutine that wakes them hands over
// its processor, but requests wait in full. Admitted work is in the queue while it is runnable, and only
// then: how much work is admitted says nothing about the queue, because admitted work may sleep.
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
		if c.mix[i] = c.mix[i]*fade + k; c.mix[i] < fewest {
			c.mix[i] = 0
		}
	}
	c.enforced, c.time = c.enforced*fade+r.Enforced, c.time*fade+dt
	each := 0.
	if c.waited > 0 {
		each = c.squares / c.waited
		if c.lengths > 0 {
			each /= max(c.lengths2/c.lengths, 1)
		}
	}
	c.length = n
	now := min(each, longestSlice/float64(max(r.Processors, 1))) * n
	c.wait, c.latest = min(now, c.latest), now
	c.aim = min(max(aimPart*r.Service.Seconds(), leastAim), mostAim)
}

// arrivals returns the number of recent arrivals, and their rate per second.
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
	case now < c.resting && c.wait < doubled*c.vain || c.enforced < n/2: // too few of the arrivals may be shed
		c.calm, c.log = now, min(c.log+opening*dt, 0)
	case c.log == 0 && (excess <= 0 || n < leastArrivals):
		c.calm = now
		return
	case c.log == 0:
		arrivals := c.madeBy(rate)
		if !arrivals && c.wait < trialFrom*c.aim {
			c.calm = now
		}
		if !arrivals && now-c.calm < doubt {
			return
		}
		c.waitBefore, c.rateBefore, c.since, c.proven, c.resting = c.wait, rate, now, false, now
		if c.shed(excess, dt, max(before, c.aim)); !arrivals { // growth below the aim is no reason to shed
			c.log = math.Log(trialShare)
		}
		return
	case c.wait < relief*c.aim:
		if c.log = min(c.log+opening*dt, 0); c.log == 0 {
			c.rest = 0
		}
	case c.log > math.Log(trialShare) || c.proven || now-c.since >= c.trial():
		c.shed(excess, dt, before)
	}
	c.judge(now, rate)
}

// madeBy reports whether arrivals at this rate make the queue, by Little's law.
func (c *Control) madeBy(rate float64) bool { return rate*c.latest >= caused*c.length }

// shed changes the share by the excess of the wait over the aim and by the growth of the wait.
func (c *Control) shed(excess, dt, before float64) {
	c.log -= pull*min(excess, mostError)*dt + brake*(c.wait-before)
	c.log = min(max(c.log, math.Log(leastShare)), 0)
}

// trial returns how long a trial lasts.
func (c *Control) trial() time.Duration {
	return min(max(time.Duration(2*c.waitBefore*float64(time.Second)), leastTrial), longTrial)
}

// judge ends the shedding if a quarter or less is admitted and the shedding does not help.
func (c *Control) judge(now time.Duration, rate float64) {
	switch {
	case c.log > math.Log(trialShare)+1e-9:
		c.since = now
	case now-c.since < leastTrial:
	case rate >= morePass*c.rateBefore && (now-c.since < longTrial || c.madeBy(rate)):
		c.proven = true
	case now-c.since < c.trial():
	case c.wait >= grown*c.waitBefore:
		c.waitBefore, c.since, c.proven = c.wait, now, false
	case c.wait <= shorter*c.waitBefore:
		if c.proven = true; now-c.since >= longTrial {
			c.giveUp(now)
		}
	default:
		c.giveUp(now)
	}
}

// giveUp pauses shedding. Each pause is at least twice as long as the previous one, and much longer than the
// shedding that was in vain.
func (c *Control) giveUp(now time.Duration) {
	c.rest = min(max(2*c.rest, vainPart*(now-c.resting)), mostRest)
	c.log, c.resting, c.vain = 0, now+c.rest, max(c.wait, c.waitBefore)
}

// Wait is how long a request waits for a processor before any code sees the request.
func (c *Control) Wait() time.Duration { return time.Duration(math.Round(c.wait * 1e9)) }

// Aim is the wait above which arrivals are shed.
func (c *Control) Aim() time.Duration { return time.Duration(c.aim * float64(time.Second)) }

// Share is the admitted part of all arrivals, above 0; 1: all.
func (c *Control) Share() float64 { return math.Exp(c.log) }

// Would estimates the part of all arrivals that shedding would admit, for a dry run. The part is at
// least a half: how far arrivals exceed the capacity is unknown while all of them are admitted.
func (c *Control) Would() float64 {
	if c.wait <= c.aim {
		return 1
	}
	return max(c.aim/c.wait, 0.5)
}

// Shares returns the admitted share of each level. The least important level is shed first. At
// least the part least of all arrivals is admitted.
func (c *Control) Shares(minShare float64) (of [Levels]float64) {
	share, total, before := max(c.Share(), minShare), 0., 1.
	left := share
	for _, n := range c.mix {
		total += n
	}
	for i, n := range c.mix {
		switch {
		case total <= 0 || share >= 1: // the mix is not known, or all are admitted
			of[i] = share
			continue
		case n == 0:
			of[i] = before // no recent arrivals
			continue
		}
		part := n / total
		of[i] = max(min(left/part, 1), leastShare)
		left, before = max(left-part, 0), of[i]
	}
	return of
}
