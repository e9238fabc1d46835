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
	// measureEvery bounds the age of the published figures while jobs end.
	measureEvery = 10 * time.Millisecond
	// sampleRate is how many jobs a second are measured: enough for any law, and
	// less than one per cent of a processor.
	sampleRate = 50_000
	mostEvery  = 256 // at least one job in mostEvery is measured
	// few is the number of samples after which adaptEarly checks whether jobs come too fast to measure.
	// adaptEarly then measures up to steepest times fewer jobs.
	few      = 64
	steepest = 16
	// shortWait is a wait in the queue that never justifies a refusal: scheduling alone causes such
	// waits.
	shortWait = time.Millisecond
	// shortDrain is how long a submitter may keep sleeping after its job was accepted. One wake-up
	// for half a queue costs less than one for each place.
	shortDrain = 5 * time.Millisecond
	// longQueue is the least half queue for late wake-ups: in shorter queues, waking submitters one
	// at a time is cheaper.
	longQueue = 64
	soon      = 100 * time.Millisecond // drain time that bounds a queue of unset size
	rateKnown = 100 * time.Millisecond // judge uses a rate only after measuring it for rateKnown
	obvious   = 4                      // with an excess above obvious times the capacity, rateKnown/5 is enough
	growth    = 4                      // GrowAt raises the limit by one part in growth at a time
)

// control measures jobs and decides how many may run and how many may wait. It sets these bounds in
// the queue, and publishes the other figures for submissions to read.
type control struct {
	handoff  *handoff.Queue[entry]
	refusals *refusals

	every      atomic.Uint64        // sampling interval in jobs; a power of two
	wanted     atomic.Bool          // the next job is to be sampled
	cost       atomic.Int64         // predicted wait for each job ahead, nanoseconds; 0: no prediction
	long       atomic.Int64         // mean run time, nanoseconds; published with cost
	overloaded atomic.Bool          // arrivals exceed capacity, and the queue is kept short
	rooms      [levels]atomic.Int64 // most jobs ahead of a queued job, for each level

	law       limit.Law       // nil: the limit is fixed, or grows by GrowAt
	forgets   limit.Forgetter // law as a Forgetter, or nil
	classes   classes         // classes of jobs for the law; guarded by mu
	size      int             // most accepted jobs that may wait
	fill      bool            // MaxWorkers and QueueSize decide: the queue is never kept short
	autoQueue bool            // QueueSize is unset and a law decides: the queue holds what drains within soon
	minLimit  int             // lower bound of the limit

	growAt   float64
	cooldown time.Duration

	mu         sync.Mutex // guards the fields below; taken before the queue's lock
	limit      int        // most jobs that may run
	low, top   int        // least workers to keep; upper bound of the limit
	seq        uint64
	last       time.Duration // latest time given to the law; never goes back
	runs       histogram.Histogram
	waits      histogram.Histogram
	mean       float64 // mean run time, nanoseconds
	n          float64
	fresh      int           // samples since the last measure
	roundStart time.Duration // start of the current few samples

	began, at     time.Duration // start of measuring; time of the last measure
	arrived, done float64       // jobs up to at
	accepted      [levels]uint64
	backlog       bool
	ended         uint64        // number of ended jobs when still was last reset
	still         time.Duration // how long jobs have run without any of them ending
	offered, rate float64       // arrivals and ends a second, smoothed
	byLevel       [levels]float64
	advice        float64 // wait that the published refusals are based on, nanoseconds
	grown         time.Duration
}

// configure sets up the control of a pool from a complete Config.
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
			// With fewer jobs than processors, some processors would idle whenever a job computes.
			c.minLimit = runtime.GOMAXPROCS(0)
		}
		c.forgets, _ = c.law.(limit.Forgetter)
		c.classes.places = places.New()
		c.limit = c.within(c.law.Limit())
	}
}

// open publishes how many jobs may wait before the first measurement.
func (c *control) open() {
	most := whole(c.queue(0))
	c.setRooms([levels]int{most, most, most, most})
}

// within clamps a limit to its bounds.
func (c *control) within(n int) int { return min(max(n, c.low, c.minLimit, 1), c.top) }

// follow sets the limit, and reports whether it changed. The caller holds the lock.
func (c *control) follow(n int) bool {
	n = c.within(n)
	if n == c.limit {
		return false
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

// retire ends workers that were idle for long. In a pool with GrowAt, the limit falls to the number
// of remaining workers.
func (c *control) retire(now, after time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.handoff.Retire(now, after, c.low); n > 0 && c.growAt > 0 {
		c.follow(min(c.limit, c.handoff.Picture().Workers))
	}
}

// quiet reports whether the pool needs no more looks: no work, no worker above the minimum, and no
// queue kept short by a past overload.
func (c *control) quiet() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	pic := c.handoff.Picture()
	return pic.Active == 0 && pic.Workers <= c.low && sum(pic.Queued) == 0 && !c.overloaded.Load()
}

// update refreshes the figures, and grows the limit by GrowAt.
func (c *control) update(now time.Duration) {
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

// wantsSample takes the number of a job that a worker took. For one number in each sampling interval, wantsSample
// requests a sample of a later job and returns true.
func (c *control) wantsSample(number uint64) (one bool) {
	if one = number&(c.every.Load()-1) == 0; one {
		c.wanted.Store(true)
	}
	return one
}

// begin reports the start of a job at a level to the law. It returns the job's number and class.
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
	seen                     time.Duration // end of the job for the law
	seq                      uint64
	outcome                  limit.Outcome
}

// sampled records a measured job.
func (c *control) sampled(s sample) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ran := s.ended - s.started
	c.waits.RecordN(int64(s.started-s.accepted), s.weight)
	if s.outcome != limit.Unknown {
		c.runs.RecordN(int64(ran), s.weight)
	}
	o := c.outcomeOf(s.outcome, s.started-s.accepted, ran)
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
		c.roundStart = s.seen
	}
	if s.seen-c.at >= measureEvery {
		c.measure(s.seen)
	} else if c.fresh%few == 0 {
		c.adaptEarly(s.seen)
	}
}

// outcomeOf returns the outcome of a job as a sample of run times. A job that its deadline ended would
// have run longer. But if most of the deadline had passed before the start, in the queue or at the
// submitter, the run time is no evidence. Such jobs are the first to end, so the law would judge
// all running jobs by a few of them, and mistake a queue for overload.
func (c *control) outcomeOf(o limit.Outcome, waited, ran time.Duration) limit.Outcome {
	if (o == limit.Deadline || o == limit.Canceled) && (ran < waited || float64(ran) < c.mean/2) {
		return limit.Unknown
	}
	return o
}
