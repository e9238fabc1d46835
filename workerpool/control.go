package workerpool

import (
	"cmp"
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/internal/handoff"
	"github.com/spillway-go/spillway/internal/places"
	"github.com/spillway-go/spillway/limit"
)

const (
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
	soon       = 100 * time.Millisecond // a queue whose size was not set is worked off by then
	rateKnown  = 100 * time.Millisecond // before that a rate is a guess,
	obvious    = 4                      // but one so many times above the capacity is soon believed
	growth     = 4                      // GrowAt allows one part in so many more at a time
)

// control measures jobs and decides how many run and how many may wait. It tells
// the queue, and publishes the rest for submissions to read.
type control struct {
	handoff  *handoff.Queue[entry]
	refusals *refusals

	every      atomic.Uint64        // one of so many jobs is sampled; a power of two
	wanted     atomic.Bool          // the next job is the one to be sampled
	cost       atomic.Int64         // predicted wait for each job ahead, nanoseconds; 0: do not predict
	long       atomic.Int64         // how long a job runs, nanoseconds; with cost
	overloaded atomic.Bool          // more arrives than can be done, and the queue is kept short
	rooms      [levels]atomic.Int64 // so many jobs may be ahead of one that waits

	law       limit.Law       // nil: the number is fixed, or grows by GrowAt
	forgets   limit.Forgetter // the law, or nil
	classes   classes         // of jobs, for the law; guarded by mu
	log       limit.Log       // of what the law changed; guarded by mu
	size      int             // jobs that may be accepted and wait
	fill      bool            // the operator set workers and queue: nothing to decide
	autoQueue bool            // neither workers nor queue are set: it is as long as is worked off soon
	least     int             // the limit is not below

	growAt   float64
	cooldown time.Duration

	mu       sync.Mutex // guards what follows; taken before the queue's
	limit    int        // most jobs that may run
	low, top int        // least workers to keep, most that the limit may become
	seq      uint64
	last     time.Duration // the law's clock never goes back
	runs     histogram.Histogram
	waits    histogram.Histogram
	mean     float64 // run time, nanoseconds
	n        float64
	fresh    int           // samples since the last measuring
	turn     time.Duration // when the last few of them began

	began, at     time.Duration // of measuring; the last time
	arrived, done float64       // until then
	accepted      [levels]uint64
	backlog       bool
	ended         uint64        // jobs, until then
	still         time.Duration // for so long jobs have run and none has ended
	offered, rate float64       // a second, smoothed: arrivals, ends
	byLevel       [levels]float64
	advice        float64 // wait that the published refusals go by
	grown         time.Duration
}

// configure makes the control of a pool whose Config is complete.
func (c *control) configure(cfg *Config, q *handoff.Queue[entry], r *refusals) {
	c.handoff, c.refusals = q, r
	fixed := cfg.MaxWorkers > 0 && cfg.Law == nil && cfg.GrowAt == 0
	c.fill = fixed && cfg.QueueSize != 0
	c.autoQueue = cfg.QueueSize == 0 && !fixed && cfg.GrowAt == 0
	c.size = cfg.queueSize()
	c.growAt, c.cooldown = cfg.GrowAt, cfg.GrowCooldown
	c.low, c.top = cfg.MinWorkers, cmp.Or(cfg.MaxWorkers, max(mostWorkers, cfg.MinWorkers))
	c.every.Store(1)
	switch {
	case fixed:
		c.limit = c.top
	case cfg.GrowAt > 0:
		c.limit = max(c.low, 1)
	default:
		if c.law = cfg.Law; c.law == nil {
			c.law = limit.NewAdaptiveForThroughput()
			// Fewer jobs than processors would leave some idle whenever a job
			// computes.
			c.least = runtime.GOMAXPROCS(0)
		}
		c.forgets, _ = c.law.(limit.Forgetter)
		c.classes.places = places.New()
		c.limit = c.within(c.law.Limit())
	}
}

// open publishes how many jobs may wait before anything is known.
func (c *control) open() {
	most := whole(c.queue(0))
	c.setRooms([levels]int{most, most, most, most})
}

// within bounds a limit.
func (c *control) within(n int) int { return min(max(n, c.low, c.least, 1), c.top) }

// follow sets the limit, and reports whether it changed. The caller holds the lock.
func (c *control) follow(n int) bool {
	n = c.within(n)
	if n == c.limit {
		return false
	}
	if c.law != nil {
		c.log.Add(limit.Decision{At: c.last, From: c.limit, To: n, Why: limit.ReporterOf(c.law).Why()})
	}
	c.limit = n
	c.handoff.Resize(n)
	return true
}

// bound sets the least workers to keep and the most that may run.
func (c *control) bound(low, top int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.low, c.top = low, top
	switch {
	case c.law != nil:
		c.follow(c.law.Limit())
	case c.growAt > 0:
		c.follow(c.limit)
	default:
		c.follow(top)
	}
}

// retire lets workers go that were idle for long. Those of a pool that grows by a
// rule take its allowance with them.
func (c *control) retire(now, after time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.handoff.Retire(now, after, c.low); n > 0 && c.growAt > 0 {
		c.follow(min(c.limit, c.handoff.Picture().Workers))
	}
}

// quiet reports whether there is nothing to look after: no work, no worker too many,
// and no queue that is kept short for an overload that is over.
func (c *control) quiet() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	pic := c.handoff.Picture()
	return pic.Active == 0 && pic.Workers <= c.low && sum(pic.Queued) == 0 && !c.overloaded.Load()
}

// look brings the figures up to date at the pool's beat, and lets it grow.
func (c *control) look(now time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now-c.at >= measureEvery {
		c.measure(now)
	}
	c.grow(now)
}

func (c *control) queued() int { return c.handoff.Ahead(levels - 1) }

func (c *control) load() limit.Load {
	pic := c.handoff.Picture()
	return limit.Load{InFlight: pic.Active, Queued: sum(pic.Queued), Enforced: c.limit}
}

// took says which job a worker took: one of so many makes a later one sampled, and is told so.
func (c *control) took(turn uint64) (one bool) {
	if one = turn&(c.every.Load()-1) == 0; one {
		c.wanted.Store(true)
	}
	return one
}

// begin tells the law of the start of a job at a level, and returns its number and its class.
func (c *control) begin(ctx context.Context, now time.Duration, lv int) (seq uint64, class uint8) {
	if c.law == nil {
		return 0, 0
	}
	kind := c.classes.places.Name(spillway.KindFrom(ctx))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = max(c.last, now)
	c.seq++
	load := c.load()
	load.Class = c.classes.begin(kind, lv)
	c.law.Admit(c.last, load)
	return c.seq, load.Class
}

// sample is a measured job.
type sample struct {
	class                    uint8
	weight                   uint64
	accepted, started, ended time.Duration
	seen                     time.Duration // to the law it lasts until then
	seq                      uint64
	outcome                  limit.Outcome
}

// sampled enters a measured job.
func (c *control) sampled(s sample) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ran := s.ended - s.started
	c.waits.RecordN(int64(s.started-s.accepted), s.weight)
	if s.outcome != limit.Unknown {
		c.runs.RecordN(int64(ran), s.weight)
	}
	o := c.tells(s.outcome, s.started-s.accepted, ran)
	if o != limit.Unknown {
		c.n++
		c.mean += max(1/c.n, 0.01) * (float64(ran) - c.mean)
	}
	if c.law != nil {
		c.last = max(c.last, s.seen)
		c.law.Observe(limit.Sample{Seq: s.seq, Start: s.started, End: c.last, Outcome: o, Class: s.class}, c.load())
		c.classes.end(s.class)
		c.follow(c.law.Limit())
	}
	if c.fresh++; c.fresh == 1 {
		c.turn = s.seen
	}
	if s.seen-c.at >= measureEvery {
		c.measure(s.seen)
	} else if c.fresh%few == 0 {
		c.hurry(s.seen)
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
