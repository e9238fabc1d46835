package workerpool

import (
	"math"
	"math/bits"
	"sync"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/limit"
)

const (
	// beat is how often a pool that has workers looks at itself, at most.
	beat = 50 * time.Millisecond
	// measureEvery is how old the published figures may become while jobs end.
	measureEvery = 10 * time.Millisecond
	// sampleRate is how many jobs a second are measured: enough for any law, and
	// less than one per cent of a processor.
	sampleRate = 50_000
	mostEvery  = 256 // one job of so many is measured, at least
	// few samples tell that jobs come too fast to measure that many of them; then
	// up to steepest times fewer are.
	few      = 64
	steepest = 16
	// shortWait is a queue that is never worth a refusal: it is what the
	// scheduler makes anyway.
	shortWait = time.Millisecond
	// shortDrain is how long a submitter may sleep on although its job was
	// accepted: waking one for half a queue costs less than one for each place.
	shortDrain = 5 * time.Millisecond
	longQueue  = 64                     // half of a queue that is worth filling at one go: in short ones, waking one at a time is cheaper
	soon       = 100 * time.Millisecond // a queue that nobody asked for is worked off by then
	settles    = 100 * time.Millisecond // before that a rate is a guess,
	plain      = 4                      // but one so far above the capacity is soon believed
	growth     = 4                      // GrowAt allows one part in so many more at a time
)

// control measures jobs and decides how many run and how many may wait. Its
// decisions are published in the pool for submissions and workers to read.
type control struct {
	fill  bool      // the operator set workers and queue: nothing to decide
	brisk bool      // nobody set workers or queue: it is as long as is worked off soon
	least int       // the limit is not below
	law   limit.Law // nil: the number is fixed, or grows by GrowAt
	log   limit.Log // of what the law changed

	mu    sync.Mutex // taken before the pool's
	seq   uint64
	last  time.Duration // the law's clock never goes back
	runs  histogram.Histogram
	waits histogram.Histogram
	mean  float64 // run time, nanoseconds
	n     float64
	fresh int           // samples since the last measuring
	turn  time.Duration // when the last few of them began

	began, at     time.Duration // of measuring; the last time
	arrived, done float64       // until then
	pushed        [levels]uint64
	backlog       bool
	offered, rate float64 // a second, smoothed: arrivals, ends
	byLevel       [levels]float64
	advice        float64 // wait that the published refusals go by
	grown         time.Duration
}

// begin tells the law of a start, and returns its number.
func (c *control) begin(p *Pool, now time.Duration) uint64 {
	if c.law == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = max(c.last, now)
	c.seq++
	c.law.Admit(c.last, p.load())
	return c.seq
}

func (p *Pool) load() limit.Load {
	return limit.Load{InFlight: int(p.state.Load() >> stateBits), Queued: p.queued(), Enforced: p.Limit()}
}

// sampled enters a measured job. To the law it lasts until now.
func (p *Pool) sampled(lv int, weight uint64, accepted, started, ended time.Duration, seq uint64, o limit.Outcome) {
	c := &p.ctl
	now := ended
	if c.law != nil {
		now = p.now()
	}
	c.mu.Lock()
	c.waits.RecordN(int64(started-accepted), weight)
	if o != limit.Unknown {
		c.runs.RecordN(int64(ended-started), weight)
	}
	if o = c.tells(o, started-accepted, ended-started); o != limit.Unknown {
		c.n++
		c.mean += max(1/c.n, 0.01) * (float64(ended-started) - c.mean)
	}
	changed := false
	if c.law != nil {
		c.last = max(c.last, now)
		c.law.Observe(limit.Sample{Seq: seq, Start: started, End: c.last, Outcome: o, Class: uint8(lv)}, p.load())
		changed = p.follow(c.law.Limit())
	}
	if c.fresh++; c.fresh == 1 {
		c.turn = now
	}
	if now-c.at >= measureEvery {
		c.measure(p, now)
	} else if c.fresh%few == 0 {
		c.hurry(p, now)
	}
	c.mu.Unlock()
	if changed {
		p.refill()
	}
}

// tells is what a job's end says of how long jobs run. A deadline that ended it
// says that it would have taken longer; but one that had mostly run out before,
// in the queue or at the submitter, says nothing. Such jobs end first, so a few of
// them would speak for all that still run, and the law take a queue for drowning.
func (c *control) tells(o limit.Outcome, waited, ran time.Duration) limit.Outcome {
	if (o == limit.Deadline || o == limit.Canceled) && (ran < waited || float64(ran) < c.mean/2) {
		return limit.Unknown
	}
	return o
}

// hurry learns from few samples what a burst cannot wait for until there is a
// rate: that fewer are enough, and that the queue is short for jobs like these.
func (c *control) hurry(p *Pool, now time.Duration) {
	took := now - c.turn
	c.turn = now
	every := p.every.Load()
	for most := every * steepest; took < few*time.Second/sampleRate && every < min(most, mostEvery); took *= 2 {
		every *= 2
	}
	p.every.Store(every)
	if c.rate == 0 {
		p.short.Store(float64(p.half.Load())*c.mean < float64(shortDrain)*float64(p.Limit()))
	}
}

// follow sets the limit, and reports whether it changed.
func (p *Pool) follow(n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.limit
	if p.relimit(n); p.limit == before {
		return false
	}
	if law := p.ctl.law; law != nil {
		p.ctl.log.Add(limit.Decision{At: p.ctl.last, From: before, To: p.limit, Why: limit.ReporterOf(law).Why()})
	}
	p.publish(p.state.Load() & shaky)
	return true
}

// measure brings rates up to date and publishes what follows from them: the wait
// that a job ahead means, how many may wait, how many jobs are sampled, and the
// refusals. The caller holds c.mu.
func (c *control) measure(p *Pool, now time.Duration) {
	p.mu.Lock()
	queued, active, slots, waiting := p.queued(), p.active, float64(p.limit), p.nWaiting
	accepted := float64(p.accepted)
	var pushed [levels]uint64
	for i := range p.rings {
		pushed[i] = p.rings[i].Pushed()
		accepted += float64(pushed[i])
	}
	p.mu.Unlock()
	refused := 0.0
	for _, r := range []spillway.Reason{spillway.QueueFull, spillway.WaitTooLong, spillway.DeadlineTooClose} {
		refused += float64(p.tally.refusedFor(r))
	}
	arrived, done := accepted+refused, accepted-float64(queued+active)
	passed := (now - c.at).Seconds()
	if c.began == 0 || passed > 2 {
		c.began, passed = now, 0 // nothing to compare with
		c.offered, c.rate, c.byLevel = 0, 0, [levels]float64{}
	}
	if passed > 0 {
		fresh := 1 - math.Exp(-passed/min(0.2, max((now-c.began).Seconds(), passed)))
		c.offered += fresh * ((arrived-c.arrived)/passed - c.offered)
		c.rate += fresh * ((done-c.done)/passed - c.rate)
		for i := range pushed {
			c.byLevel[i] += fresh * (float64(pushed[i]-c.pushed[i])/passed - c.byLevel[i])
		}
	}
	full := queued > 0 && active >= int(slots)
	saturated := full && c.backlog
	c.backlog, c.at, c.arrived, c.done, c.pushed = full, now, arrived, done, pushed
	c.fresh = 0
	if passed == 0 || c.n == 0 {
		return
	}
	p.every.Store(sampleOf(c.rate))
	p.short.Store(float64(p.half.Load())/c.rate < shortDrain.Seconds())
	capacity := slots / max(c.mean, 1) * 1e9 // jobs a second, unless processors are short
	if saturated && c.rate > 0 {
		capacity = min(capacity, c.rate)
	}
	cost := 1e9 / capacity
	c.rooms(p, now, capacity)
	wait := float64(queued+waiting+1) * cost
	if math.Abs(wait-c.advice) > c.advice/4 {
		c.advice = wait
		p.nays.Store(newNays(time.Duration(wait)))
	}
	// Predictions cost a reading of the clock: only where waits are worth it.
	if c.mean < float64(100*time.Microsecond) && wait < float64(shortWait) {
		cost = 0
	}
	p.long.Store(int64(c.mean))
	p.cost.Store(int64(cost))
}

// rooms publishes how many jobs may wait. While more arrives than can be done a
// queue cannot drain and only adds latency: then a wait is to be shorter than the
// run that follows it, with something left for runs that take longer in a crowd.
func (c *control) rooms(p *Pool, now time.Duration, capacity float64) {
	over := c.offered/capacity - 1
	bounded := !c.fill && over > 0 && (now-c.began >= settles || over > plain && now-c.began >= settles/5)
	wait := max(0.6*c.mean, float64(shortWait)) / 1e9 * max(1, 0.06/(over*over))
	free := capacity
	most := c.queue(p, capacity)
	for lv := range p.rooms {
		room := most
		if bounded {
			room = min(room, max(1, wait*max(free, capacity/floor)))
		}
		p.rooms[lv].Store(int64(room))
		p.half.Store(int64(room) / 2)
		free -= c.byLevel[lv]
	}
}

// queue is how many jobs may wait in the worst of times. A burst fills the queue
// before the first job has ended, when nobody can know how long that will last;
// what was accepted then cannot be refused later.
func (c *control) queue(p *Pool, capacity float64) float64 {
	most := float64(p.queueCap)
	if c.brisk {
		most = min(most, max(firstQueue, capacity*soon.Seconds()))
	}
	return most
}

// sampleOf is one in how many jobs is measured at a rate: a power of two.
func sampleOf(perSecond float64) uint64 {
	n := min(max(perSecond/sampleRate, 1), mostEvery)
	return 1 << bits.Len64(uint64(math.Ceil(n))-1)
}

// grow follows the rule of GrowAt.
func (c *control) grow(p *Pool, now time.Duration) bool {
	if p.cfg.GrowAt == 0 {
		return false
	}
	queued := p.queued()
	if c.grown > 0 && now-c.grown < p.cfg.GrowCooldown || float64(queued) < p.cfg.GrowAt*float64(p.rooms[levels-1].Load()) {
		return false
	}
	p.mu.Lock()
	n := p.limit + max(p.limit/growth, 1)
	p.mu.Unlock()
	if !p.follow(n) {
		return false
	}
	c.grown = now
	return true
}

// look is the pool's beat: it measures, grows, retires workers that were idle
// for long and gives the places of jobs back that will not run. It ends when the
// pool is idle.
func (p *Pool) look() {
	now := p.now()
	c := &p.ctl
	c.mu.Lock()
	if now-c.at >= measureEvery {
		c.measure(p, now)
	}
	grown := c.grow(p, now)
	c.mu.Unlock()
	if grown {
		p.refill()
	}
	p.mu.Lock()
	p.tries.Store(1)
	var dead []ended
	woken := p.recall()
	if p.nWaiting > 0 {
		dead = p.sweep()
	}
	p.beating = false
	p.reap(now)
	p.arm()
	p.publish(0)
	p.mu.Unlock()
	wakeAll(woken)
	p.refill() // a worker that took a job of a short queue admitted nobody
	p.tellAll(dead)
}

// arm sees that the pool looks at itself again, unless it is idle. The caller
// holds the lock.
func (p *Pool) arm() {
	if p.beating || p.closed != 0 || p.active == 0 && p.workers <= p.low && p.queued() == 0 {
		return
	}
	p.beating = true
	if p.timer == nil {
		p.timer = time.AfterFunc(p.beat, p.look)
	} else {
		p.timer.Reset(p.beat)
	}
}

// reap retires workers that have been idle for long. The longest idle are the
// lowest in the stack; those parked since the last look are the uppermost, and
// count from now: a worker that parks does not read the clock. An idle pool also
// gives its memory back. The caller holds the lock.
func (p *Pool) reap(now time.Duration) {
	for i := len(p.parked) - 1; i >= 0 && p.parked[i].since == 0; i-- {
		p.parked[i].since = now
	}
	n := 0
	for n < len(p.parked) && p.workers > p.low && now-p.parked[n].since >= p.cfg.IdleTimeout {
		p.parked[n].exit = true
		p.parked[n].wake <- struct{}{}
		p.workers--
		n++
	}
	if n > 0 {
		p.parked = append(p.parked[:0], p.parked[n:]...)
		clear(p.parked[len(p.parked) : len(p.parked)+n])
		if p.cfg.GrowAt > 0 {
			p.relimit(min(p.limit, p.workers))
		}
	}
	if p.active == 0 && p.workers <= p.low && p.queued() == 0 {
		if len(p.parked) == 0 {
			p.parked = nil
		}
		for i := range p.rings {
			p.rings[i].Shrink()
		}
	}
}
