package workerpool

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/spillway-go/spillway"
)

// Group runs jobs that belong together and collects their errors and panics. Make a Group with
// Pool.Group or Pool.Collect, and always call Wait: errors and panics surface there. A Group is
// safe for concurrent use.
//
// A job may use TrySubmit on a group of its own pool, for example for files that it found in a
// folder. Submit inside a job may wait for room that only the job itself could make; see
// Pool.Submit. Wait inside a job holds a worker, as a nested Do does.
type Group struct {
	pool   *Pool
	ctx    context.Context
	cancel context.CancelCauseFunc // nil: errors cancel nothing
	open   atomic.Int64            // jobs that have not ended, plus one for the group until Wait
	done   chan struct{}           // closed when open reaches zero

	mu       sync.Mutex
	errs     []error
	panicked *spillway.PanicError
	goexit   bool
	waited   bool
}

// Group returns a group whose first error cancels the context of its other jobs; jobs that have not
// started then never run. Wait returns the first error.
func (p *Pool) Group(ctx context.Context) *Group {
	p.mustBeMade()
	g := &Group{pool: p, done: make(chan struct{})}
	g.ctx, g.cancel = context.WithCancelCause(ctx)
	g.open.Store(1)
	return g
}

// Collect returns a group that runs every job, whatever the other jobs return. Wait returns all
// errors, joined.
func (p *Pool) Collect(ctx context.Context) *Group {
	p.mustBeMade()
	g := &Group{pool: p, ctx: ctx, done: make(chan struct{})}
	g.open.Store(1)
	return g
}

// Submit hands job over as Pool.Submit does, with the group's context, for one allocation. A refused job is not part of
// the group: the caller handles its error. Submit must not be called after Wait.
func (g *Group) Submit(job Job) error { return g.submit(job, g.pool.cfg.MaxWait >= 0) }

// TrySubmit is Submit without the wait: when the queue is full it returns a *spillway.Rejection at
// once. A job of the same pool then does the refused work itself.
func (g *Group) TrySubmit(job Job) error { return g.submit(job, false) }

func (g *Group) submit(job Job, mayWait bool) error {
	if job == nil {
		return errNoJob
	}
	if g.open.Add(1) == 1 {
		panic("workerpool: Submit on a Group after Wait")
	}
	if err := g.ctx.Err(); err != nil {
		g.pool.gone.Add(1)
		g.leave()
		return context.Cause(g.ctx)
	}
	m := &member{call: call{group: g}}
	m.note.call = &m.call
	if _, err := g.pool.submit(g.ctx, job, &m.note, mayWait); err != nil {
		g.leave()
		return err
	}
	return nil
}

// member is what a group needs for one of its jobs.
type member struct {
	call
	note note
}

// Wait blocks until every job has ended. It returns the first error, or all errors joined for
// Collect. A panic of a job is raised again here, unless Config.OnPanic says otherwise, and
// runtime.Goexit in a job ends the caller's goroutine too. If ctx ends first, Wait returns
// ctx.Err() and does not cancel the jobs; Wait may be called again.
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

// ended records the end of a job.
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
