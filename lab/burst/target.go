package burst

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/lab/burst/specimen"
	"github.com/spillway-go/spillway/objectpool"
	"github.com/spillway-go/spillway/workerpool"
)

// Contestants. All but the naive ones bound what they run at once. A job of one that ends
// with reused has its buffer from a sync.Pool, or from objectpool if it is ours.
const (
	Naive           = "naive"                  // a goroutine for each job
	Stopped         = "naive-stopped"          // likewise at the published pace: see asPublished
	Published       = "published-shape"        // the published pool's
	PublishedReused = "published-shape-reused" //
	Channel         = "channel"                // 1,000 workers and as many queue places, refusing at once
	ChannelReused   = "channel-reused"         //
	Spillway        = "spillway"               // workerpool.New(workerpool.Config{}) and TrySubmit
	Reused          = "spillway-reused"        //
	Sized           = "spillway-sized"         // likewise, told as many workers and queue places as the channel
)

// Names lists the contestants in the order of the report.
func Names() []string {
	return []string{Naive, Stopped, Published, PublishedReused, Channel, ChannelReused, Spillway, Reused, Sized}
}

// channelWorkers is how many workers and queue places the channel has.
const channelWorkers = 1_000

// reuses reports whether a contestant's jobs reuse their buffers.
func reuses(name string) bool { return strings.HasSuffix(name, "-reused") || name == Sized }

// task is the job submitted to a contestant: the same for all submissions of one
// batch, so that the generator allocates little.
type task = func(context.Context) error

// target is a contestant under load.
type target struct {
	submit func(task) bool // false: refused
	parks  bool            // a submission may park its goroutine
	drain  func()          // waits for what was accepted
	bound  func() int      // the most that it runs at once, now; nil: it has none
}

func newTarget(name string) (*target, error) {
	ctx := context.Background()
	var all sync.WaitGroup
	switch name {
	case Naive, Stopped:
		return &target{
			submit: func(t task) bool { all.Go(func() { _ = t(ctx) }); return true },
			drain:  all.Wait,
		}, nil
	case Published, PublishedReused:
		shape := specimen.Published()
		pool := specimen.New(shape)
		submit := func(t task) bool {
			ctx, cancel := context.WithTimeout(ctx, time.Microsecond) // as published
			defer cancel()
			return pool.Submit(ctx, t) == nil
		}
		return &target{
			submit: submit, parks: true,
			drain: func() { _ = pool.Shutdown(ctx) },
			bound: func() int { return shape.MaxWorkers },
		}, nil
	case Channel, ChannelReused:
		queue := make(chan task, channelWorkers)
		for range channelWorkers {
			all.Go(func() {
				for t := range queue {
					_ = t(ctx)
				}
			})
		}
		submit := func(t task) bool {
			select {
			case queue <- t:
				return true
			default:
				return false
			}
		}
		return &target{
			submit: submit,
			drain:  func() { close(queue); all.Wait() }, // all generators have ended
			bound:  func() int { return channelWorkers },
		}, nil
	}
	var cfg workerpool.Config
	if name == Sized {
		cfg = workerpool.Config{MaxWorkers: channelWorkers, QueueSize: channelWorkers}
	}
	pool, err := workerpool.New(cfg)
	return &target{
		submit: func(t task) bool { return pool.TrySubmit(ctx, t) == nil },
		drain:  func() { _ = pool.Drain(ctx) },
		bound:  func() int { return cmp.Or(cfg.MaxWorkers, 10_000) }, // the default of the pool
	}, err
}

// Work is one unit of the published work: a buffer that is touched on every page,
// then a wait.
type Work struct {
	Bytes int           `group:"Size" default:"512000" least:"4096" help:"The size of a job's buffer."`
	Wait  time.Duration `group:"Size" default:"20ms" least:"0s" help:"How long a job takes after it has touched its buffer."`
}

// PublishedWork is the unit of the published burst.
var PublishedWork = Work{Bytes: 500 << 10, Wait: 20 * time.Millisecond}

const page = 4096

// Buffer is the memory of one job. Nothing but the first byte of each page is written.
type Buffer []byte

// fill writes every page. With 0 it undoes that: it costs what was written, not the size.
func (b Buffer) fill(with byte) {
	for i := 0; i < len(b); i += page {
		b[i] = with
	}
}

// Memory provides the buffers of jobs: fresh or reused.
type Memory struct {
	take      func() *Buffer
	Give      func(*Buffer)  // takes a buffer back, which must not be used any more
	ReuseRate func() float64 // the true share of buffers that were reused; -1 without reuse
}

// NewMemory returns a Memory of buffers of that size, which objectpool reuses or nobody.
func NewMemory(size int, reuse bool) *Memory {
	fresh := func() *Buffer { b := make(Buffer, size); return &b }
	if !reuse {
		return &Memory{take: fresh, Give: func(*Buffer) {}, ReuseRate: func() float64 { return -1 }}
	}
	pool := objectpool.New(objectpool.Config[Buffer]{New: fresh, Clear: func(b *Buffer) { b.fill(0) }})
	return &Memory{take: pool.Get, Give: pool.Put, ReuseRate: func() float64 {
		s := pool.Stats()
		return float64(s.Reused) / float64(max(s.Gets, 1))
	}}
}

// memoryOf is the memory of a contestant's jobs. A sync.Pool reuses that of others than ours,
// cleared as objectpool clears.
func memoryOf(name string, size int) *Memory {
	if name != PublishedReused && name != ChannelReused {
		return NewMemory(size, reuses(name))
	}
	var taken, made atomic.Int64
	pool := sync.Pool{New: func() any { made.Add(1); b := make(Buffer, size); return &b }}
	return &Memory{
		take:      func() *Buffer { taken.Add(1); return pool.Get().(*Buffer) },
		Give:      func(b *Buffer) { b.fill(0); pool.Put(b) },
		ReuseRate: func() float64 { return 1 - float64(made.Load())/float64(max(taken.Load(), 1)) },
	}
}

// Take returns a touched buffer. It is the part of the work that uses the processor.
func (m *Memory) Take() *Buffer {
	b := m.take()
	b.fill(1)
	return b
}
