package workerpool

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway"
)

// Do runs fn on a worker of p and returns the results of fn. Do waits for room as Submit does, and
// allocates nothing once it is warm.
//
// If ctx ends before fn starts, fn never runs. If ctx ends while fn runs, Do returns ctx.Err() at
// once; fn, which has the same ctx, finishes on its worker, and its result is dropped. So fn must
// not write to memory that its caller uses afterwards: fn should return everything it makes.
//
// A panic of fn is raised again in the caller, with its original value, unless Config.PanicsAsErrors
// is set. runtime.Goexit in fn ends the caller's goroutine too. If the caller has left by then,
// a panic is handled as for a submitted job: Config.OnDone receives it, or the process ends.
//
// A job that calls Do on its own pool holds one worker while it waits for a second. If all workers
// do so, they wait until their contexts end, and Stats().State reports the stall.
func Do[T any](ctx context.Context, p *Pool, fn func(context.Context) (T, error)) (T, error) {
	var zero T
	if p == nil || fn == nil {
		return zero, p.unfit()
	}
	if err := ctx.Err(); err != nil {
		p.gone.Add(1)
		return zero, err
	}
	free := recordsOf[T](p)
	r, _ := free.Get().(*record[T])
	if r == nil {
		r = &record[T]{call: call{done: make(chan struct{}, 1)}}
		r.job, r.note.call = r.run, &r.call
	}
	r.fn = fn
	gone := ctx.Done()
	r.leaves = gone != nil
	t, err := p.submit(ctx, r.job, &r.note, p.cfg.MaxWait >= 0)
	if err != nil {
		r.recycle(free)
		return zero, err
	}
	if gone == nil {
		<-r.done
	} else {
		select {
		case <-r.done:
		case <-gone:
			switch {
			case p.queue.Remove(t): // the job never ran, and the record is free again
				at := r.note.at
				r.recycle(free)
				p.removed(ctx, at)
				return zero, ctx.Err()
			// From here on the record belongs to the worker, and is not used again.
			case r.state.CompareAndSwap(callQueued, callLeft):
				p.report(r.note.at, Result{Context: ctx, Err: ctx.Err()})
				return zero, ctx.Err()
			case r.state.CompareAndSwap(callRuns, callLeft):
				return zero, ctx.Err()
			}
			<-r.done // the job ended at the same moment
		}
	}
	value, err, panicked, goexit := r.value, r.err, r.panicked, r.goexit
	r.recycle(free)
	switch {
	case panicked != nil && !p.cfg.PanicsAsErrors:
		panic(panicked.Value)
	case goexit:
		runtime.Goexit()
	}
	return value, err
}

// call is a job that a caller waits for. The worker writes the result; finish then hands the whole
// record back.
type call struct {
	done   chan struct{}
	state  atomic.Uint32
	leaves bool // the caller may leave before the job ends

	err      error
	panicked *spillway.PanicError
	goexit   bool
}

const (
	callQueued = iota
	callRuns
	callEnded
	callLeft
)

// begin marks the job as started or dropped. It returns false if the caller has left.
func (c *call) begin() bool {
	return !c.leaves || c.state.CompareAndSwap(callQueued, callRuns)
}

// end makes the result final. It returns false if the caller has left; the caller then gets no
// result.
func (c *call) end() bool {
	return !c.leaves || c.state.CompareAndSwap(callRuns, callEnded)
}

// finish notifies the caller that the result is final. Afterwards the call belongs to the caller.
func (c *call) finish() { c.done <- struct{}{} }

// record is a call with its function and result.
type record[T any] struct {
	call
	note  note
	job   Job // the method value run, bound once
	fn    func(context.Context) (T, error)
	value T
}

func (r *record[T]) run(ctx context.Context) (err error) {
	r.value, err = r.fn(ctx)
	return err
}

func (r *record[T]) recycle(free *records[T]) {
	var zero T
	r.fn, r.value = nil, zero
	r.err, r.panicked, r.goexit = nil, nil, false
	r.note.timed, r.note.weight = false, 0
	if r.leaves {
		r.state.Store(callQueued)
	}
	free.Put(r)
}

// records holds the free records of one result type. Each pool has its own, because a channel
// belongs to the synctest bubble that made it.
type records[T any] struct{ sync.Pool }

// recordsOf returns the free records of result type T. It searches linearly: a pool has few result
// types.
func recordsOf[T any](p *Pool) *records[T] {
	for {
		all := p.calls.Load()
		if all != nil {
			for _, r := range *all {
				if r, ok := r.(*records[T]); ok {
					return r
				}
			}
		}
		more := []any{&records[T]{}}
		if all != nil {
			more = append(more, *all...)
		}
		p.calls.CompareAndSwap(all, &more)
	}
}

// removed ends a job that its caller removed from the queue.
func (p *Pool) removed(ctx context.Context, accepted time.Duration) {
	defer p.queue.Finish(1)
	p.report(accepted, Result{Context: ctx, Err: ctx.Err()})
}
