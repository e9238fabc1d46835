package postgres

import (
	"context"
	"sync"
	"time"
)

// slots are the right to use a connection: as many as the pool may have. They are taken
// before the pool is asked: so callers wait here and never in the pool, and what is
// measured is the wait for a connection that another request uses.
type slots struct {
	free chan struct{}

	mu      sync.Mutex
	waiting int
	asked   int           // since the last call of mean, or waiting since before
	waited  time.Duration // by all, since the last call of mean
	counted time.Time     // until when waited is complete
	total   time.Duration // waited since the start
	last    time.Duration // what mean last returned
	peak    int           // most that were taken at one time
}

func newSlots(n int) *slots {
	s := &slots{free: make(chan struct{}, n), counted: time.Now()}
	for range n {
		s.free <- struct{}{}
	}
	return s
}

// take waits for a slot, in the order of calls.
func (s *slots) take(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-s.free:
		s.count(0)
		return nil
	default:
	}
	s.count(+1)
	defer s.count(-1)
	select {
	case <-s.free:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *slots) give() { s.free <- struct{}{} }

// rest gives the slot back in a while.
func (s *slots) rest(d time.Duration) { time.AfterFunc(d, s.give) }

// count adds to those who wait; zero is for one that need not.
func (s *slots) count(waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.elapse(time.Now())
	s.waiting += waiting
	if waiting >= 0 {
		s.asked++
	}
	s.peak = max(s.peak, cap(s.free)-len(s.free))
}

func (s *slots) elapse(now time.Time) {
	d := time.Duration(s.waiting) * now.Sub(s.counted)
	s.waited += d
	s.total += d
	s.counted = now
}

// mean returns how long those who asked since the last call waited for a slot in that
// time, on average. Those who wait still, and may wait forever, count with what they
// have waited.
func (s *slots) mean() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.elapse(time.Now())
	s.last = s.waited / time.Duration(max(s.asked, 1))
	s.waited, s.asked = 0, s.waiting
	return s.last
}

// slotStats is a picture of the slots.
type slotStats struct {
	waiting, peak int
	waited        time.Duration // by all, since the start
	last          time.Duration // what mean last returned
}

func (s *slots) stats() slotStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.elapse(time.Now())
	return slotStats{s.waiting, s.peak, s.total, s.last}
}
