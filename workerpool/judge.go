package workerpool

import (
	"context"
	"math"
	"math/bits"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/handoff"
)

// adaptEarly adapts to a burst from few samples, before measure has a rate: it measures fewer jobs if
// they come too fast, and calls notifyLate with a rate derived from the mean run time.
func (c *control) adaptEarly(now time.Duration) {
	elapsed := now - c.roundStart
	c.roundStart = now
	every := c.every.Load()
	for most := every * steepest; elapsed < few*time.Second/sampleRate && every < min(most, mostEvery); elapsed *= 2 {
		every *= 2
	}
	c.every.Store(every)
	if c.rate == 0 {
		c.notifyLate(1e9 * float64(c.limit) / c.mean)
	}
}

// notifyLate makes the queue notify submitters late that their jobs were accepted, if half of the
// queue drains within shortDrain at rate jobs a second.
func (c *control) notifyLate(rate float64) {
	half := int(c.rooms[levels-1].Load()) / 2
	if half < longQueue || float64(half)/rate > shortDrain.Seconds() {
		half = math.MaxInt
	}
	c.handoff.SetLow(half)
}

// measure updates the rates and publishes the figures that depend on them: the wait per job ahead,
// how many jobs may wait, how many are sampled, and the refusals. The caller holds the lock.
func (c *control) measure(now time.Duration) {
	pic := c.handoff.Picture()
	queued, slots := sum(pic.Queued), float64(c.limit)
	accepted := float64(sum(pic.Accepted))
	refused := float64(pic.Expired)
	for _, r := range []spillway.Reason{spillway.ReasonQueueFull, spillway.ReasonWaitTooLong, spillway.ReasonDeadlineTooClose} {
		refused += float64(c.refusals.count(r))
	}
	arrived, done := accepted+refused, accepted-float64(queued+pic.Active)
	passed := (now - c.at).Seconds()
	if c.began == 0 || passed > 2 {
		c.began, passed = now, 0 // nothing to compare with
		c.offered, c.rate, c.byLevel = 0, 0, [levels]float64{}
	}
	if passed > 0 {
		fresh := 1 - math.Exp(-passed/min(0.2, max((now-c.began).Seconds(), passed)))
		c.offered += fresh * ((arrived-c.arrived)/passed - c.offered)
		c.rate += fresh * ((done-c.done)/passed - c.rate)
		for i, n := range pic.Accepted {
			c.byLevel[i] += fresh * (float64(n-c.accepted[i])/passed - c.byLevel[i])
		}
	}
	if c.still += time.Duration(passed * 1e9); passed == 0 || pic.Active == 0 || pic.Ended != c.ended {
		c.still, c.ended = 0, pic.Ended
	}
	full := queued > 0 && pic.Active >= c.limit
	saturated := full && c.backlog
	c.backlog, c.at, c.arrived, c.done, c.accepted = full, now, arrived, done, pic.Accepted
	c.fresh = 0
	c.renew()
	if passed == 0 || c.n == 0 {
		return
	}
	c.every.Store(sampleOf(c.rate))
	capacity := slots / max(c.mean, 1) * 1e9 // jobs a second, unless processors are short
	if saturated && c.rate > 0 {
		capacity = min(capacity, c.rate)
	}
	cost := 1e9 / capacity
	c.judge(now, capacity)
	c.notifyLate(c.rate)
	wait := float64(queued+sum(pic.Waiting)+1) * cost
	if math.Abs(wait-c.advice) > c.advice/4 {
		c.advice = wait
		c.refusals.advise(span(wait))
	}
	// A prediction costs a clock read, so predict only long runs or waits.
	if c.mean < float64(100*time.Microsecond) && wait < float64(shortWait) {
		cost = 0
	}
	c.long.Store(int64(c.mean))
	c.cost.Store(int64(cost))
}

// judge publishes how many jobs may wait. While arrivals exceed capacity, a queue cannot drain and
// only adds latency. The wait must then stay below the run time that follows, with a reserve
// because runs take longer in a crowd.
func (c *control) judge(now time.Duration, capacity float64) {
	over := c.offered/capacity - 1
	bounded := !c.fill && over > 0 && (now-c.began >= rateKnown || over > obvious && now-c.began >= rateKnown/5)
	wait := max(0.6*c.mean, float64(shortWait)) / 1e9 * max(1, 0.06/(over*over))
	free := capacity
	most := c.queue(capacity)
	var rooms [levels]int
	for lv := range rooms {
		room := most
		if bounded {
			room = min(room, max(1, wait*max(free, capacity/handoff.Floor)))
		}
		rooms[lv] = whole(room)
		free -= c.byLevel[lv]
	}
	c.overloaded.Store(bounded)
	c.setRooms(rooms)
}

// whole converts x to an int. Values above math.MaxInt become math.MaxInt.
func whole(x float64) int {
	if x >= math.MaxInt {
		return math.MaxInt
	}
	return int(x)
}

// span converts nanoseconds to a Duration. Values above the longest Duration become the longest.
func span(ns float64) time.Duration {
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(ns)
}

func (c *control) setRooms(rooms [levels]int) {
	for lv, n := range rooms {
		c.rooms[lv].Store(int64(n))
	}
	c.handoff.SetRooms(rooms)
}

// queue returns the upper bound on waiting jobs. A burst fills the queue before the first job has
// ended, when the drain time is still unknown. A job accepted then cannot be refused later.
func (c *control) queue(capacity float64) float64 {
	most := float64(c.size)
	if c.autoQueue {
		most = min(most, max(firstQueue, capacity*soon.Seconds()))
	}
	return most
}

// sampleOf returns how many jobs share one sample at a rate: a power of two.
func sampleOf(perSecond float64) uint64 {
	n := min(max(perSecond/sampleRate, 1), mostEvery)
	return 1 << bits.Len64(uint64(math.Ceil(n))-1)
}

// grow applies the rule of GrowAt. The caller holds the lock.
func (c *control) grow(now time.Duration) {
	if c.growAt == 0 || c.grown > 0 && now-c.grown < c.cooldown {
		return
	}
	if float64(c.queued()) >= c.growAt*float64(c.rooms[levels-1].Load()) && c.follow(c.limit+min(max(c.limit/growth, 1), c.top-c.limit)) {
		c.grown = now
	}
}

// fullness returns the reason to refuse a job at level lv when there is no room.
func (c *control) fullness(lv int) spillway.Reason {
	if c.rooms[lv].Load() < int64(c.size) {
		return spillway.ReasonWaitTooLong
	}
	return spillway.ReasonQueueFull
}

// hopeless returns the reason to refuse a job that would miss its deadline behind ahead jobs, or
// zero.
func (c *control) hopeless(ctx context.Context, ahead int) spillway.Reason {
	end, ok := ctx.Deadline()
	if !ok || ahead == 0 {
		return 0
	}
	wait := float64(ahead) * float64(c.cost.Load())
	if float64(time.Until(end)) < wait+float64(c.long.Load()) {
		return spillway.ReasonDeadlineTooClose
	}
	return 0
}

// tooLate returns the reason to refuse a job that would wait for room in vain, or zero.
func (c *control) tooLate(ctx context.Context, lv int, maxWait time.Duration) spillway.Reason {
	cost := c.cost.Load()
	if cost == 0 {
		return 0
	}
	pic, ahead := c.handoff.Picture(), 1
	for i := range lv + 1 {
		ahead += pic.Queued[i] + pic.Waiting[i]
	}
	if reason := c.hopeless(ctx, ahead); reason != 0 {
		return reason
	}
	// A job that waits for room until its deadline is near would start in vain.
	if _, ends := ctx.Deadline(); ends && c.overloaded.Load() {
		return spillway.ReasonWaitTooLong
	}
	beyond := int64(ahead) - c.rooms[lv].Load()
	if maxWait > 0 && beyond > 0 && float64(beyond)*float64(cost) > float64(maxWait) {
		return spillway.ReasonWaitTooLong
	}
	return 0
}

// drain returns the predicted time to work off the queue; zero without a prediction.
func (c *control) drain() time.Duration {
	return span(float64(c.cost.Load()) * float64(c.queued()+1))
}

func sum[N int | uint64](all [levels]N) (n N) {
	for _, k := range all {
		n += k
	}
	return n
}
