package loadgen

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// run is the state that the goroutines of one Run share.
type run struct {
	cfg     Config
	begin   time.Time
	elapsed time.Duration // set by supervise

	sending context.Context // no request is sent once sending has ended
	stop    func()          // ends sending
	flying  context.Context // the parent of every request's context
	cut     func()          // ends flying

	goroutines sync.WaitGroup
	stopped    atomic.Bool   // at least one planned request was not sent
	waited     atomic.Uint64 // requests that waited because MaxInFlight was reached

	classes classed // nil: the target has none

	mu        sync.Mutex
	recorders []*recorder
	fault     *fault
	shards    []shard
}

// fault is how a target ended its goroutine without returning: panic or Goexit.
type fault struct {
	value  any
	goexit bool
}

func newRun(ctx context.Context, cfg Config) *run {
	r := &run{cfg: cfg}
	classes := 0
	if t, ok := cfg.Target.(classed); ok {
		r.classes, classes = t, len(t.names())
	}
	r.shards = newShards(runtime.GOMAXPROCS(0), classes, cfg.Progress != nil)
	r.sending, r.stop = context.WithCancel(ctx)
	r.flying, r.cut = context.WithCancel(context.WithoutCancel(ctx))
	r.begin = time.Now()
	return r
}

// now returns the time since the run began.
func (r *run) now() time.Duration { return time.Since(r.begin) }

// spawn runs f on a goroutine that supervise waits for. It keeps the first panic for Run to raise
// again.
func (r *run) spawn(f func()) {
	r.goroutines.Go(func() {
		returned := false
		defer func() {
			if returned {
				return
			}
			v := recover()
			r.mu.Lock()
			if r.fault == nil {
				r.fault = &fault{value: v, goexit: v == nil}
			}
			r.mu.Unlock()
			r.stop()
			r.cut()
		}()
		f()
		returned = true
	})
}

// supervise returns when all goroutines of the run have returned. Until then it reports progress,
// and gives requests in flight their grace when ctx ends.
func (r *run) supervise(ctx context.Context, done <-chan struct{}) {
	var tick <-chan time.Time
	if r.cfg.Progress != nil {
		ticker := time.NewTicker(r.cfg.Interval)
		defer ticker.Stop()
		tick = ticker.C
	}
	ended := ctx.Done()
	var graceOver <-chan time.Time
	for {
		select {
		case <-done:
			r.elapsed = max(r.now(), 0)
			return
		case <-tick:
			r.cfg.Progress(r.snapshot())
		case <-ended:
			ended = nil
			graceOver = time.After(grace)
		case <-graceOver:
			r.cut()
		}
	}
}

// send sends request n and records its outcome. A negative intended start means now.
func (r *run) send(rec *recorder, n uint64, intended time.Duration) {
	ctx, cancel := rec.flying, context.CancelFunc(nil)
	rec.sent.Add(1)
	sent := r.now()
	if intended < 0 {
		intended = sent
	}
	if r.cfg.Timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, r.cfg.Timeout)
	}
	outcome := r.cfg.Target.Do(ctx, n)
	end := r.now()
	if cancel != nil {
		cancel()
	}
	if outcome >= outcomes {
		panic("loadgen: the target returned " + outcome.String() + ", which does not exist")
	}
	if r.cfg.Timeout > 0 && end-sent > r.cfg.Timeout {
		outcome = Timeout
	}
	if outcome >= Error && r.flying.Err() != nil {
		outcome = aborted // ended by the generator, not by the target
	}
	class := uint16(0)
	if r.classes != nil {
		class = r.classes.class(n)
	}
	x := record{intended: intended, sent: sent, end: end, class: class, outcome: outcome}
	if noted := rec.note.take(); noted.there && outcome != aborted {
		x.explain(&noted)
	}
	rec.record(x)
}
