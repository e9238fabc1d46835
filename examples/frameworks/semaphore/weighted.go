package main

import (
	"context"
	"math"
	"sync"

	"github.com/spillway-go/spillway/limiter"
)

// Weighted is a limiter with the methods of semaphore.Weighted. Acquire may refuse,
// with a *spillway.Rejection. A semaphore is not told how work went, so that all of it
// is a sample: where work fails fast or panics often, take limiter.Do. Work that
// weighs more than the limit runs alone, where a semaphore would wait for ever.
type Weighted struct {
	lim *limiter.Limiter

	mu   sync.Mutex
	held map[int64][]limiter.Permit // by weight, the oldest first
}

// NewWeighted returns lim as a semaphore. Others may use lim too.
func NewWeighted(lim *limiter.Limiter) *Weighted {
	return &Weighted{lim: lim, held: map[int64][]limiter.Permit{}}
}

// Acquire waits for n slots as Limiter.Acquire does.
func (w *Weighted) Acquire(ctx context.Context, n int64) error {
	p, err := w.lim.AcquireWith(ctx, limiter.Request{Cost: cost(n)})
	if err == nil {
		w.hold(n, p)
	}
	return err
}

// TryAcquire takes n slots if they are free.
func (w *Weighted) TryAcquire(n int64) bool {
	p, err := w.lim.TryAcquireWith(context.Background(), limiter.Request{Cost: cost(n)})
	if err == nil {
		w.hold(n, p)
	}
	return err == nil
}

// Release ends the oldest work of weight n. Which one ended is not known, but the
// durations add up to the same.
func (w *Weighted) Release(n int64) {
	w.mu.Lock()
	permits := w.held[n]
	if len(permits) == 0 {
		w.mu.Unlock()
		panic("semaphore: released more than held")
	}
	p := permits[0]
	if w.held[n] = permits[1:]; len(permits) == 1 {
		delete(w.held, n)
	}
	w.mu.Unlock()
	p.Done(nil)
}

func (w *Weighted) hold(n int64, p limiter.Permit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held[n] = append(w.held[n], p)
}

func cost(n int64) int { return int(min(n, math.MaxInt32)) }
