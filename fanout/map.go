package fanout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
)

// MapConfig says how Map works. The zero value works and is bounded.
type MapConfig struct {
	// Limit is how many elements are worked on at once. Zero means 8 for each
	// processor (GOMAXPROCS); there is no way to say "all". It cannot be negative.
	Limit int

	// CollectAll goes on after an error: the elements that worked are returned
	// with the errors of the others.
	CollectAll bool

	// Budget bounds the goroutines over all calls that share it, as
	// Config.Budget does. Nil means Limit goroutines for this call and those that
	// fn makes with its context, taken together: nested calls do not multiply.
	Budget *Budget

	// OnLate is told of each error, also a panic, that came when Map had failed
	// already, on the goroutine where it happened. Nil: they are dropped.
	OnLate func(*ItemError)
}

const limitPerProc = 8

// ItemError is the error of one element.
type ItemError struct {
	Index int // in the slice given to Map
	Err   error
}

func (e *ItemError) Error() string { return fmt.Sprintf("fanout: element %d: %v", e.Index, e.Err) }

// Unwrap returns Err.
func (e *ItemError) Unwrap() error { return e.Err }

// Map calls fn for every element and returns the results in the order of the
// elements. Panics of fn are errors; runtime.Goexit in fn ends the caller too.
//
// With the first error, Map cancels the context of the other calls, starts no
// more, and returns nil and a *ItemError without waiting for those that run. With
// CollectAll, the result is as long as items, with zero values where fn failed,
// and the error joins an *ItemError for each, in order. When ctx ends first, its
// error is the last of those joined, or the only one. A ctx that has ended already
// starts nothing, and the result is the same: nil, or with CollectAll zero values.
//
// fn must not write to what its caller uses afterwards: after an error it may
// still run. Without a free goroutine in the budget fn runs in the caller, which
// then waits until it returns.
func Map[T, R any](ctx context.Context, cfg MapConfig, items []T, fn func(context.Context, T) (R, error)) ([]R, error) {
	switch {
	case cfg.Limit < 0:
		return nil, fmt.Errorf("fanout: Map: Limit is %d: it cannot be negative (zero means %d for each processor)", cfg.Limit, limitPerProc)
	case fn == nil:
		return nil, errors.New("fanout: Map: fn is nil")
	case cfg.Budget.unmade():
		return nil, errors.New("fanout: Map: " + useNewBudget)
	}
	if err := ctx.Err(); err != nil {
		if cfg.CollectAll {
			return make([]R, len(items)), errors.Join(err) // as if it had ended at once
		}
		return nil, err
	}
	limit := cmp.Or(cfg.Limit, limitPerProc*runtime.GOMAXPROCS(0))
	m := &mapping[T, R]{
		items: items, fn: fn, all: cfg.CollectAll, onLate: cfg.OnLate,
		limit:  limit,
		budget: cfg.Budget,
		wake:   make(chan struct{}, 1),
		out:    make([]R, len(items)),
	}
	if m.budget == nil {
		m.budget, _ = ctx.Value(mapBudget{}).(*Budget)
	}
	if m.budget == nil {
		m.budget = &Budget{size: int64(limit)}
		ctx = context.WithValue(ctx, mapBudget{}, m.budget)
	}
	m.ctx, m.cancel = context.WithCancelCause(ctx)
	return m.do(ctx)
}

type mapBudget struct{}

// mapping is the state of one Map. Results are written under its lock while it
// is open.
type mapping[T, R any] struct {
	items  []T
	fn     func(context.Context, T) (R, error)
	all    bool
	onLate func(*ItemError)
	limit  int
	budget *Budget
	ctx    context.Context
	cancel context.CancelCauseFunc
	wake   chan struct{}

	mu      sync.Mutex
	out     []R
	errs    []*ItemError // unsorted
	next    int
	done    int
	working int // goroutines, and the caller once it works itself
	goexit  bool
	closed  bool
}

func (m *mapping[T, R]) do(ctx context.Context) ([]R, error) {
	defer m.close() // also when fn calls runtime.Goexit on this goroutine
	m.mu.Lock()
	started := m.start()
	if !started {
		m.working++ // the caller: it counts against the limit too
	}
	m.mu.Unlock()
	if !started {
		m.work(false)
		if err := ctx.Err(); err != nil { // had it been free, the caller would have returned then
			return m.outcome(err)
		}
	}
	for !m.over() {
		select {
		case <-m.wake:
		case <-ctx.Done():
			return m.outcome(ctx.Err())
		}
	}
	return m.outcome(m.cut(ctx.Err()))
}

// cut returns end, that of the caller's context, if an element failed because of
// it: that it noticed before the caller did makes no difference. The call is over, and
// the errors are fn's: they are asked without the lock.
func (m *mapping[T, R]) cut(end error) error {
	m.mu.Lock()
	failed := m.errs[:len(m.errs):len(m.errs)]
	m.mu.Unlock()
	if end != nil && slices.ContainsFunc(failed, func(e *ItemError) bool { return errors.Is(e, end) }) {
		return end
	}
	return nil
}

// over reports whether there is nothing to wait for.
func (m *mapping[T, R]) over() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.done == len(m.items) || m.goexit || len(m.errs) > 0 && !m.all
}

func (m *mapping[T, R]) close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.cancel(context.Canceled)
}

// start starts a goroutine, within the limit and the budget. It is called with
// the lock held.
func (m *mapping[T, R]) start() bool {
	if m.next == len(m.items) || m.working == m.limit || !m.budget.take() {
		return false
	}
	m.working++
	go func() {
		defer func() {
			m.mu.Lock()
			m.working--
			m.mu.Unlock()
			m.budget.give()
		}()
		m.work(true)
	}()
	return true
}

// work works on elements until none is left. Each goroutine starts another one
// first, so that calls that wait all wait at once, and calls that compute start
// few goroutines for nothing. The caller, alone because the budget was spent,
// asks again before each element.
func (m *mapping[T, R]) work(grow bool) {
	for {
		m.mu.Lock()
		if m.next == len(m.items) || m.closed || m.goexit || m.ctx.Err() != nil {
			m.mu.Unlock()
			return
		}
		i := m.next
		m.next++
		if grow || m.working == 1 {
			grow = !m.start() && grow
		}
		m.mu.Unlock()
		m.call(i)
	}
}

func (m *mapping[T, R]) call(i int) {
	returned := false
	defer func() {
		if !returned {
			m.mu.Lock()
			if !m.late() { // a caller that has returned reads this without the lock
				m.goexit = true
			}
			m.mu.Unlock()
			m.signal()
		}
	}()
	v, err := guard(m.ctx, m.items[i], m.fn)
	returned = true

	m.mu.Lock()
	defer m.mu.Unlock()
	if m.late() {
		if err != nil && m.onLate != nil {
			m.mu.Unlock()
			defer m.mu.Lock()
			m.onLate(&ItemError{i, err})
		}
		return
	}
	m.done++
	if err == nil {
		m.out[i] = v
	} else {
		m.errs = append(m.errs, &ItemError{i, err})
		if !m.all {
			m.cancel(m.errs[0])
		}
	}
	if m.done == len(m.items) || err != nil && !m.all {
		m.signal()
	}
}

// late reports whether the end of an element no longer counts. It is
// called with the lock held.
func (m *mapping[T, R]) late() bool { return m.closed || len(m.errs) > 0 && !m.all }

func (m *mapping[T, R]) signal() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *mapping[T, R]) outcome(ctxErr error) ([]R, error) {
	m.close()
	if m.goexit {
		runtime.Goexit()
	}
	if !m.all {
		switch {
		case ctxErr != nil:
			return nil, ctxErr
		case len(m.errs) > 0:
			return nil, m.errs[0]
		}
		return m.out, nil
	}
	failed := make([]error, len(m.items)+1)
	for _, e := range m.errs {
		failed[e.Index] = e
	}
	failed[len(m.items)] = ctxErr
	return m.out, errors.Join(failed...)
}
