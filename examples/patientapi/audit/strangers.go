package audit

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// What callers who have not proved who they are can put on record: so many events each,
// in so much time, and one that stands for all the others.
const (
	StrangersEach  = 100
	StrangersEvery = time.Minute
)

// Strangers is a Log that bounds what a flood of requests without a good token can put on
// record: from the 101st within a minute, they are counted, and answered at once. At the end
// of the minute the first of them is recorded, with the Count of all. A process that is
// killed takes the count of that minute with it. All other events go on record each.
type Strangers struct {
	next Log

	mu   sync.Mutex
	seen int   // in this minute
	sum  Event // the first of those that are counted
	end  *time.Timer

	turning sync.Mutex // while a minute ends
}

// NewStrangers returns a Log in front of next.
func NewStrangers(next Log) *Strangers { return &Strangers{next: next} }

// Record implements Log. Of an event that is counted it returns nil.
func (s *Strangers) Record(ctx context.Context, e Event) error {
	if e.Subject == "" && e.Status == http.StatusUnauthorized && e.Outcome == Denied && s.counts(e) {
		return nil
	}
	return s.next.Record(ctx, e)
}

// counts reports whether e is one too many, and counted.
func (s *Strangers) counts(e Event) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == 0 {
		s.end = time.AfterFunc(StrangersEvery, func() { _ = s.turn() })
	}
	if s.seen++; s.seen <= StrangersEach {
		return false
	}
	e.Count = 1
	s.add(e)
	return true
}

func (s *Strangers) add(e Event) {
	if s.sum.Count > 0 {
		s.sum.Count += e.Count
	} else {
		s.sum = e
	}
}

// turn ends a minute. What cannot be recorded is counted in the next one.
func (s *Strangers) turn() error {
	s.turning.Lock()
	defer s.turning.Unlock()
	s.mu.Lock()
	sum := s.sum
	s.seen, s.sum = 0, Event{}
	if s.end != nil {
		s.end.Stop()
	}
	s.mu.Unlock()
	if sum.Count == 0 {
		return nil
	}
	err := s.next.Record(context.Background(), sum)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.add(sum)
		if s.seen == 0 {
			s.seen, s.end = 1, time.AfterFunc(StrangersEvery, func() { _ = s.turn() })
		}
	}
	return err
}

// Close records what was counted, and returns why that failed. Call Record no more.
func (s *Strangers) Close() error {
	err := s.turn()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil {
		s.end.Stop()
	}
	return err
}
