package burst

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/usage"
)

// job is the input of a contestant.
type job struct {
	Config
	Name   string
	Burst  time.Duration // how long it is offered jobs
	Shared string        // the file of the counters
}

const (
	patience = time.Minute            // for accepted jobs after the burst
	step     = 100 * time.Millisecond // of the time lines
	// wakeEvery is how often a generator submits the jobs that are due: a thousand then
	// need 50,000 wake-ups a second, spread evenly, instead of a million.
	wakeEvery   = 20 * time.Millisecond
	sampleEvery = 16 // jobs, and batches of submissions, to one that is measured
	// mostClocked is how many may be measured at once. Each holds a thread, also while
	// the collector makes it wait, and the runtime ends a process with 10,000 threads.
	mostClocked = 64
)

// bench is a contestant with its generators.
type bench struct {
	job
	*counters
	target  *target
	memory  *Memory
	started time.Time
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
	b.memory = NewMemory(b.Bytes, reuses(b.Name))
	p := usage.Start()
	b.started = time.Now()
	b.began.Store(b.started.UnixNano())
	var generators sync.WaitGroup
	for i := range b.Generators {
		generators.Go(func() { b.generate(ctx, i) })
	}
	generators.Wait()
	b.offered.Store(int64(b.now()))
	drained := make(chan struct{})
	go func() { b.target.drain(); close(drained) }()
	select {
	case <-drained:
	case <-time.After(patience): // what is left has timed out
	case <-ctx.Done():
	}
	b.ended.Store(int64(b.now()))
	b.account()
	used := experiment.Process(p.Stop())
	used.ReuseRate = b.memory.ReuseRate()
	return used, ctx.Err()
}

func (b *bench) now() time.Duration { return time.Since(b.started) }

// generate submits the jobs that are due until the burst is over. One that is late
// submits all due jobs at once, also after the end of the burst, for a refusal takes no
// time. If submissions park, jobs not submitted by the end were not offered.
func (b *bench) generate(ctx context.Context, i int) {
	s := &b.shards[i%shards]
	perWake := b.Rate / float64(b.Generators) * wakeEvery.Seconds()
	every := wakeEvery
	if perWake < 1 {
		every, perWake = time.Duration(float64(every)/perWake), 1
	}
	due := time.Duration(float64(every) * float64(i) / float64(b.Generators))
	for k := 1; due < b.Burst; k++ {
		if wait := due - b.now(); wait > 0 {
			time.Sleep(wait)
		}
		now := b.now()
		if b.target.parks && now >= b.Burst || ctx.Err() != nil {
			return
		}
		b.submit(s, now, int(perWake*float64(k))-int(perWake*float64(k-1)), (i+k)%sampleEvery == 0)
		b.lookIfDue(now)
		due += every
	}
}

// submit offers n jobs, which share one submission time. If it can, it measures the
// processor time of a sample.
func (b *bench) submit(s *shard, at time.Duration, n int, sample bool) {
	t := task(func(context.Context) error { b.work(s, at); return nil })
	refused := 0
	try := func(n int) {
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
		s.add(sendSampled, int64(n-1))
	}
	s.add(jobsOffered, int64(n))
	s.add(jobsRefused, int64(refused))
}

// work is one job.
func (b *bench) work(s *shard, at time.Duration) {
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
	b.done.record(int64(b.now() - at))
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
	if b.target.state != nil {
		running, queued, bound := b.target.state()
		b.running.Store(int64(running))
		b.queued.Store(int64(queued))
		b.bound.Store(max(b.bound.Load(), int64(bound)))
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
