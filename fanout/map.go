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

// MapConfig configures Map. The zero value works and is bounded.
type MapConfig struct {
	// Limit is how many elements are in progress at once. Zero means 8 per processor (GOMAXPROCS);
	// no value means "all". Limit cannot be negative.
	Limit int

	// CollectAll makes Map continue after an error: Map returns the results of the successful
	// elements and the errors of the others.
	CollectAll bool

	// Bulkhead bounds the goroutines over all calls that share the Bulkhead, as Config.Bulkhead does. Nil
	// means Limit goroutines for this call and the nested calls that fn makes with its context,
	// taken together: nested calls do not multiply goroutines.
	Bulkhead *Bulkhead

	// OnLate receives each error, including panics, that occurs after Map has failed, on the
	// goroutine where the error occurred. If OnLate is nil, late errors are dropped.
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

// Map calls fn for every element and returns the results in the order of the elements. A panic of
// fn is an error of the element. runtime.Goexit in fn ends the caller's goroutine too.
//
// On the first error, Map cancels the context of the other calls and starts no more elements. Map
// then returns nil and a *ItemError without waiting for running elements. With CollectAll, the
// result is as long as items, with zero values where fn failed. The error then joins an *ItemError
// for each failed element, in order. When ctx ends first, its error is the last joined error, or
// without CollectAll the only error. If ctx has already ended, Map starts nothing and returns the
// same: nil, or with CollectAll zero values, and ctx's error.
//
// fn must not write to data that its caller uses afterwards: after an error, fn may still run.
// Without a free goroutine in the bulkhead, fn runs in the caller, and Map waits until fn returns.
func Map[T, R any](ctx context.Context, cfg MapConfig, items []T, fn func(context.Context, T) (R, error)) ([]R, error) {
	switch {
	case cfg.Limit < 0:
		return nil, fmt.Errorf("fanout: Map: Limit is %d: it cannot be negative (zero means %d for each processor)", cfg.Limit, limitPerProc)
	case fn == nil:
		return nil, errors.New("fanout: Map: fn is nil")
	case cfg.Bulkhead.isZero():
		return nil, errors.New("fanout: Map: " + useNewBulkhead)
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
		limit:    limit,
		bulkhead: cfg.Bulkhead,
		wake:     make(chan struct{}, 1),
		out:      make([]R, len(items)),
	}
	if m.bulkhead == nil {
		m.bulkhead, _ = ctx.Value(mapBulkhead{}).(*Bulkhead)
	}
	if m.bulkhead == nil {
		m.bulkhead = &Bulkhead{size: int64(limit)}
		ctx = context.WithValue(ctx, mapBulkhead{}, m.bulkhead)
	}
	m.ctx, m.cancel = context.WithCancelCause(ctx)
	return m.do(ctx)
}

type mapBulkhead struct{}

// mapping is the state of one Map call. Results are written under the lock while the call is open.
type mapping[T, R any] struct {
	items    []T
	fn       func(context.Context, T) (R, error)
	all      bool
	onLate   func(*ItemError)
	limit    int
	bulkhead *Bulkhead
	ctx      context.Context
	cancel   context.CancelCauseFunc
	wake     chan struct{}

	mu      sync.Mutex
	out     []R
	errs    []*ItemError // unsorted
	next    int
	done    int
	working int  // number of goroutines, plus one if the caller runs elements itself
	exited  bool // fn called runtime.Goexit
	closed  bool
}

func (m *mapping[T, R]) do(ctx context.Context) ([]R, error) {
	defer m.close() // also when fn calls runtime.Goexit on this goroutine
	if !m.begin() {
		m.work(false)
		if err := ctx.Err(); err != nil { // a caller that runs no element would have returned by now
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

// begin starts a goroutine. Without one, it returns false, and the caller counts against the limit.
func (m *mapping[T, R]) begin() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	started := m.start()
	if !started {
		m.working++
	}
	return started
}

// cut returns end, the error of the caller's context, if an element failed with end. So the result
// does not depend on whether the element or the caller noticed the end first. The call is over. The
// errors may be user code, so their methods are called without the lock.
func (m *mapping[T, R]) cut(end error) error {
	m.mu.Lock()
	failed := m.errs[:len(m.errs):len(m.errs)]
	m.mu.Unlock()
	if end != nil && slices.ContainsFunc(failed, func(e *ItemError) bool { return errors.Is(e, end) }) {
		return end
	}
	return nil
}

// over reports whether the caller has nothing left to wait for.
func (m *mapping[T, R]) over() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.done == len(m.items) || m.exited || len(m.errs) > 0 && !m.all
}

func (m *mapping[T, R]) close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.cancel(context.Canceled)
}

// start starts a goroutine, within the limit and the bulkhead. The lock is held.
func (m *mapping[T, R]) start() bool {
	if m.next == len(m.items) || m.working == m.limit || !m.bulkhead.take() {
		return false
	}
	m.working++
	go func() {
		defer m.depart()
		m.work(true)
	}()
	return true
}

// depart ends a goroutine of start.
func (m *mapping[T, R]) depart() {
	m.mu.Lock()
	m.working--
	m.mu.Unlock()
	m.bulkhead.give()
}

// work runs elements until none is left. Each goroutine starts another goroutine first, so that all
// waiting elements wait at once, and computing elements start few useless goroutines. A caller that
// works alone because the bulkhead was full asks for a token before each element.
func (m *mapping[T, R]) work(grow bool) {
	for {
		i, item, ok := m.take(&grow)
		if !ok {
			return
		}
		m.call(i, item)
	}
}

// take takes the next element, and starts another goroutine if grow is set or the caller works
// alone. grow is reset when a goroutine was started. The element is read under the lock while the
// call is open: once Map has returned, the caller may write to the slice.
func (m *mapping[T, R]) take(grow *bool) (i int, item T, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.next == len(m.items) || m.closed || m.exited || m.ctx.Err() != nil {
		return 0, item, false
	}
	i = m.next
	m.next++
	if *grow || m.working == 1 {
		*grow = !m.start() && *grow
	}
	return i, m.items[i], true
}

func (m *mapping[T, R]) call(i int, item T) {
	returned := false
	defer func() {
		if !returned {
			m.exit()
		}
	}()
	v, err := guard(m.ctx, item, m.fn)
	returned = true
	if late := m.record(i, v, err); late && err != nil && m.onLate != nil {
		m.onLate(&ItemError{i, err})
	}
}

// exit records that fn called runtime.Goexit.
func (m *mapping[T, R]) exit() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.late() { // a caller that has returned reads exited without the lock
		m.exited = true
	}
	signal(m.wake)
}

// record records the result of element i, or reports that the result is late.
func (m *mapping[T, R]) record(i int, v R, err error) (late bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.late() {
		return true
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
		signal(m.wake)
	}
	return false
}

// late reports whether the result of an element no longer counts. The lock is held.
func (m *mapping[T, R]) late() bool { return m.closed || len(m.errs) > 0 && !m.all }

func (m *mapping[T, R]) outcome(ctxErr error) ([]R, error) {
	m.close()
	if m.exited {
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
