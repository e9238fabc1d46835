package workerpool

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/spillway-go/spillway"
)

// Group runs jobs that belong together and collects how they ended. Make it with
// Pool.Group or Pool.Collect, and always call Wait: errors and panics arrive
// there. It is safe for concurrent use.
//
// A job may submit to a group of its own pool, such as for what it found in a folder, by
// TrySubmit. Submit there waits for room that perhaps only the job itself would make, see
// Pool.Submit; and Wait there holds a worker meanwhile, as a nested Do does.
type Group struct {
	pool   *Pool
	ctx    context.Context
	cancel context.CancelCauseFunc // nil: errors cancel nothing
	open   atomic.Int64            // jobs that have not ended, and one for the group
	done   chan struct{}           // closed when that is zero

	mu       sync.Mutex
	errs     []error
	panicked *spillway.PanicError
	goexit   bool
	waited   bool
}

// Group returns a group whose first error cancels the context of its other jobs:
// those that have not started never run. Wait returns that error.
func (p *Pool) Group(ctx context.Context) *Group {
	p.made()
	g := &Group{pool: p, done: make(chan struct{})}
	g.ctx, g.cancel = context.WithCancelCause(ctx)
	g.open.Store(1)
	return g
}

// Collect returns a group that lets every job run whatever the others do. Wait
// returns all errors, joined.
func (p *Pool) Collect(ctx context.Context) *Group {
	p.made()
	g := &Group{pool: p, ctx: ctx, done: make(chan struct{})}
	g.open.Store(1)
	return g
}

// Submit hands job over as Pool.Submit does, with the group's context. A job
// that was refused is no part of the group: the error is the caller's to handle.
// Submit must not be called after Wait.
func (g *Group) Submit(job Job) error { return g.submit(job, g.pool.cfg.MaxWait >= 0) }

// TrySubmit is Submit without the wait: when the queue is full it returns a
// *spillway.Rejection at once. A job of the same pool then does that work itself.
func (g *Group) TrySubmit(job Job) error { return g.submit(job, false) }

func (g *Group) submit(job Job, mayWait bool) error {
	if job == nil {
		return errNoJob
	}
	if g.open.Add(1) == 1 {
		panic("workerpool: Submit on a Group after Wait")
	}
	c := &call{}
	c.told = func() { g.ended(c) }
	run := func(ctx context.Context) error {
		c.err = job(ctx)
		return c.err
	}
	if err := g.ctx.Err(); err != nil {
		g.pool.gone.Add(1)
		g.leave()
		return context.Cause(g.ctx)
	}
	if _, err := g.pool.submit(g.ctx, run, &note{call: c}, mayWait); err != nil {
		g.leave()
		return err
	}
	return nil
}

// Wait waits until every job has ended and says how: with the first error, or
// with all of them for Collect. A panic of a job is raised again here, unless
// Config.OnPanic says otherwise, and runtime.Goexit ends the caller too. When ctx
// ends first, Wait returns ctx.Err(); the jobs are not cancelled by that, and Wait
// may be called again.
func (g *Group) Wait(ctx context.Context) error {
	g.mu.Lock()
	first := !g.waited
	g.waited = true
	g.mu.Unlock()
	if first {
		g.leave()
	}
	select {
	case <-g.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if g.cancel != nil {
		g.cancel(nil)
	}
	switch {
	case g.panicked != nil && g.pool.cfg.OnPanic != AsError:
		panic(g.panicked.Value)
	case g.goexit:
		runtime.Goexit()
	case len(g.errs) == 0:
		return nil
	case g.cancel != nil:
		return g.errs[0]
	}
	return errors.Join(g.errs...)
}

// ended takes the end of a job.
func (g *Group) ended(c *call) {
	if c.err != nil {
		g.mu.Lock()
		g.errs = append(g.errs, c.err)
		if c.panicked != nil && g.panicked == nil {
			g.panicked = c.panicked
		}
		g.goexit = g.goexit || c.goexit
		g.mu.Unlock()
		if g.cancel != nil {
			g.cancel(c.err)
		}
	}
	g.leave()
}

func (g *Group) leave() {
	if g.open.Add(-1) == 0 {
		close(g.done)
	}
}
