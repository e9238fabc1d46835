// Package specimen reproduces the shape of a published worker pool, in a few lines
// of our own, so that the lab can show its behaviour. DO NOT USE IT. The shape is
// that of github.com/iyashjayesh/go-adaptive-pool; the correct counterpart is
// package workerpool.
package specimen

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Job is what a pool runs.
type Job func(ctx context.Context) error

// ErrShutdown is returned by a Submit that sees the shutdown in time.
var ErrShutdown = errors.New("specimen: shut down")

// Config is the sizes of a pool.
type Config struct {
	MinWorkers, MaxWorkers, QueueSize int
	GrowAt                            float64       // grow when this share of the queue is full
	Every                             time.Duration // how often that is checked
	Cooldown                          time.Duration // the least time between two growths
	IdleTimeout                       time.Duration // a worker above the minimum exits after it
}

// Published is the configuration of the published burst.
func Published() Config {
	return Config{
		MinWorkers: 100, MaxWorkers: 5_000, QueueSize: 100_000,
		GrowAt: 0.7, Every: time.Second, Cooldown: 500 * time.Millisecond, IdleTimeout: 30 * time.Second,
	}
}

// Pool grows by a quarter when its queue is nearly full. What is wrong with it:
//   - Submit checks the shutdown flag, then sends on the queue, which Shutdown
//     closes. A Shutdown in between makes Submit panic in the caller's goroutine.
//   - A refusal is a context that ends: a timer, an allocation and often a park
//     for a caller that needs the answer at once.
//   - A job runs with the context that bounded its submission, ended or not.
//   - It starts at the minimum and needs seconds of a full queue to grow, while
//     the jobs in the queue wait.
type Pool struct {
	cfg      Config
	queue    chan submitted
	stop     chan struct{} // ends the goroutine that grows the pool
	grown    sync.WaitGroup
	all      sync.WaitGroup // workers
	workers  atomic.Int64
	shutdown atomic.Bool
	once     sync.Once
}

type submitted struct {
	ctx context.Context
	job Job
}

// New starts the least number of workers. Shutdown ends them.
func New(cfg Config) *Pool {
	p := &Pool{cfg: cfg, queue: make(chan submitted, cfg.QueueSize), stop: make(chan struct{})}
	p.grown.Go(p.grow)
	p.start(cfg.MinWorkers)
	return p
}

// Submit waits for room until ctx ends.
func (p *Pool) Submit(ctx context.Context, job Job) error {
	if p.shutdown.Load() {
		return ErrShutdown
	}
	select {
	case p.queue <- submitted{ctx, job}: // panics if Shutdown ran in between
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Shutdown closes the queue and waits for the workers to empty it.
func (p *Pool) Shutdown(ctx context.Context) error {
	p.once.Do(func() {
		p.shutdown.Store(true)
		close(p.stop)
		p.grown.Wait()
		close(p.queue)
	})
	ended := make(chan struct{})
	go func() {
		p.all.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Workers returns how many there are.
func (p *Pool) Workers() int { return int(p.workers.Load()) }

// Queued returns how many jobs wait.
func (p *Pool) Queued() int { return len(p.queue) }

func (p *Pool) start(n int) {
	for range n {
		p.workers.Add(1)
		p.all.Go(p.work)
	}
}

func (p *Pool) grow() {
	tick := time.NewTicker(p.cfg.Every)
	defer tick.Stop()
	var last time.Time
	for {
		select {
		case <-p.stop:
			return
		case <-tick.C:
		}
		n := p.Workers()
		full := float64(len(p.queue)) >= p.cfg.GrowAt*float64(cap(p.queue))
		if !full || n >= p.cfg.MaxWorkers || time.Since(last) < p.cfg.Cooldown {
			continue
		}
		last = time.Now()
		p.start(min(max(1, n/4), p.cfg.MaxWorkers-n))
	}
}

func (p *Pool) work() {
	defer p.workers.Add(-1)
	idle := time.NewTimer(p.cfg.IdleTimeout)
	defer idle.Stop()
	for {
		select {
		case s, ok := <-p.queue:
			if !ok {
				return
			}
			idle.Reset(p.cfg.IdleTimeout)
			_ = s.job(s.ctx) // whether or not a caller still waits for it
		case <-idle.C:
			if p.Workers() > p.cfg.MinWorkers {
				return
			}
			idle.Reset(p.cfg.IdleTimeout)
		}
	}
}
