package burst

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/load/usage"
)

// job is the input of a contestant.
type job struct {
	Config
	Name     string
	Shared   string        // the file of the counters
	Patience time.Duration // see patience; a test that no accepted job is lost has more
}

const (
	// patience is how long a run waits for accepted jobs after the burst. The published
	// figures are those at the end of the burst.
	patience = time.Second
	step     = 100 * time.Millisecond // of the time lines
	// wakeEvery is how often a generator looks for jobs that are due: of a thousand, one
	// looks every tenth of a millisecond.
	wakeEvery   = 100 * time.Millisecond
	lateAfter   = 100 * time.Millisecond // a job that is submitted later than that after it was due is late
	mostAtOnce  = 10_000                 // jobs taken from the schedule together, if no submission parks
	sampleEvery = 16                     // jobs, and batches of submissions, to one that is measured
	// mostClocked is how many may be measured at once. Each holds a thread, also while the
	// collector makes it wait, and that can be until naive is killed. The runtime ends a
	// process with 10,000 threads.
	mostClocked = 1_000
)

// bench is a contestant with its generators.
type bench struct {
	job
	*counters
	target  *target
	memory  *Memory
	started time.Time
	taken   atomic.Int64 // jobs of the schedule that a generator submits or has submitted
	stopped atomic.Bool  // by itself: see asPublished
	clocked atomic.Int64 // goroutines whose processor time is being measured
	next    atomic.Int64 // when the next look is due, since the start
	look    sync.Mutex   // only TryLock
}

// run is the contestant's side. Besides its counters, it reports what it used.
func run(ctx context.Context, j job, ready contestant.Ready) (_ any, err error) {
	b := bench{job: j}
	if b.counters, _, err = contestant.Share[counters](b.Shared); err != nil {
		return nil, err
	}
	if b.target, err = newTarget(b.Name); err != nil {
		return nil, err
	}
	if err = ready(true); err != nil {
		return nil, err
	}
	b.memory = memoryOf(b.Name, b.Bytes)
	p := usage.Start()
	b.started = time.Now()
	b.began.Store(b.started.UnixNano())
	generate := b.generate
	if b.Name == Stopped {
		generate = b.asPublished
		go b.stop(ctx)
	}
	var generators sync.WaitGroup
	for i := range b.Generators {
		generators.Go(func() { generate(ctx, i) })
	}
	generators.Wait()
	b.offered.Store(int64(b.now()))
	drained := make(chan struct{})
	go func() { b.target.drain(); close(drained) }()
	select {
	case <-drained:
	case <-time.After(b.Patience): // what is left has timed out
	case <-ctx.Done():
	}
	b.ended.Store(int64(b.now()))
	b.account()
	used := experiment.Process(p.Stop())
	used.ReuseRate = b.memory.ReuseRate()
	return used, ctx.Err()
}

func (b *bench) now() time.Duration { return time.Since(b.started) }

// generate submits jobs of the schedule that all generators share: whichever is free
// takes those that are due. After the end of the burst what is late is still submitted,
// for a refusal takes no time. If submissions park, jobs not submitted by then were not
// offered.
func (b *bench) generate(ctx context.Context, i int) {
	time.Sleep(min(b.Time, wakeEvery*time.Duration(i)/time.Duration(b.Generators)))
	for k := i; ctx.Err() == nil; k++ {
		now := b.now()
		over := now >= b.Time
		switch {
		case over && b.target.parks:
			return
		case b.offer(&b.shards[i%shards], now, k%sampleEvery == 0):
		case over:
			return
		default:
			time.Sleep(min(wakeEvery, b.Time-now))
		}
	}
}

// offer submits jobs that are due, if there are any.
func (b *bench) offer(s *shard, now time.Duration, sample bool) bool {
	most := int64(mostAtOnce)
	if b.target.parks {
		most = 1
	}
	first, n := b.take(now, most)
	if n <= 0 {
		return false
	}
	b.submit(s, now, n, sample)
	s.add(jobsLate, min(n, max(0, b.due(now-lateAfter)-first)))
	b.lookIfDue(now)
	return true
}

// due is how many jobs are due by then. The first is due after one interval.
func (j *job) due(at time.Duration) int64 { return int64(j.Rate * min(at, j.Time).Seconds()) }

// take takes up to most of the jobs that are due from the schedule. It returns the number
// of the first, and how many there are.
func (b *bench) take(now time.Duration, most int64) (first, n int64) {
	for {
		first = b.taken.Load()
		if n = min(most, b.due(now)-first); n <= 0 || b.taken.CompareAndSwap(first, first+n) {
			return first, n
		}
	}
}

// asPublished submits as the published naive run does: one job after the other, each
// followed by a sleep, until the burst is over or too much memory is in use.
func (b *bench) asPublished(ctx context.Context, i int) {
	for k := i; b.now() < b.Time && !b.stopped.Load() && ctx.Err() == nil; k++ {
		b.submit(&b.shards[i%shards], b.now(), 1, false)
		time.Sleep(10 * time.Microsecond)
		b.lookIfDue(b.now())
	}
}

// stop is how the published naive run stops itself.
func (b *bench) stop(ctx context.Context) {
	for tick := time.Tick(time.Second); ctx.Err() == nil && !b.stopped.Load(); <-tick {
		var now runtime.MemStats
		runtime.ReadMemStats(&now)
		b.stopped.Store(now.Sys > publishedStop)
	}
}

// submit offers n jobs, which share one submission time. If it can, it measures the
// processor time of a sample.
func (b *bench) submit(s *shard, at time.Duration, n int64, sample bool) {
	t := task(func(context.Context) error { b.work(s, at); return nil })
	var refused int64
	try := func(n int64) {
		for range n {
			if !b.target.submit(t) {
				refused++
			}
		}
	}
	began := time.Now()
	try(1)
	if refused == 1 {
		b.no.record(int64(time.Since(began)))
	}
	if !sample || b.target.parks || n < 2 {
		try(n - 1)
	} else if took, ok := b.clock(func() { try(n - 1) }); ok {
		s.add(sendCPU, int64(took))
		s.add(sendSampled, n-1)
	}
	s.add(jobsOffered, n)
	s.add(jobsRefused, refused)
	s.add(acceptedAt, (n-refused)*int64(at))
}

// work is one job. Where goroutines are unbounded, generators wait for minutes behind those
// that they have spawned, so there a job offers what is due, too.
func (b *bench) work(s *shard, at time.Duration) {
	now := b.now()
	if now >= b.Time+b.Patience {
		return // the burst has been judged, and what is left ends
	}
	if b.Name == Naive {
		b.offer(s, now, false)
	}
	var buffer *Buffer
	take := func() { buffer = b.memory.Take() }
	if s.add(jobsBegun, 1)%sampleEvery == 0 {
		if took, ok := b.clock(take); ok {
			s.add(workCPU, int64(took))
			s.add(workSampled, 1)
		}
		b.lookIfDue(b.now())
	} else {
		take()
	}
	s.add(jobsTaken, 1)
	time.Sleep(b.Wait)
	b.memory.Give(buffer)
	end := b.now()
	s.add(jobsRan, int64(end-now))
	s.add(finishedAt, int64(at))
	b.done.record(int64(end - at))
}

// clock runs f and measures its processor time, unless too many are being measured.
func (b *bench) clock(f func()) (took time.Duration, ok bool) {
	defer b.clocked.Add(-1)
	if b.clocked.Add(1) > mostClocked {
		f()
		return 0, false
	}
	return usage.ThreadTime(f), true
}

// lookIfDue samples what only the process itself can see. Jobs and generators call
// it, because a separate goroutine would have to wait to be scheduled.
func (b *bench) lookIfDue(now time.Duration) {
	if int64(now) < b.next.Load() || !b.look.TryLock() {
		return
	}
	defer b.look.Unlock()
	b.next.Store(int64(now + step))
	b.goroutines.Store(int64(runtime.NumGoroutine()))
	if b.target.bound != nil {
		b.bound.Store(max(b.bound.Load(), int64(b.target.bound())))
	}
	b.account()
}

// account stores what the runtime says of its processor time.
func (b *bench) account() {
	gc, assist, busy := usage.Spent()
	b.gc.Store(int64(gc * 1e9))
	b.assist.Store(int64(assist * 1e9))
	b.busy.Store(int64(busy * 1e9))
}
