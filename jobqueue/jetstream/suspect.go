package jetstream

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// A suspect is a job at its last attempt of whose attempt before nobody has said how it
// ended: the process died, or the engine was away. The job may be the reason. When a process
// dies, each job that it had in hand has lost an attempt. So suspects run one at a time, and
// while one runs the process takes no other job.
//
// suspects of a process: none, one that waits until all that was taken is looked at, or one
// that runs.
type suspects struct {
	mu      sync.Mutex
	one     chan struct{} // closed when it is over; nil: there is none
	looking int           // at jobs that may be suspects
	looked  chan struct{} // closed when looking is 0; nil: nobody waits for that
}

// longestLook bounds the wait of a suspect for others: in a process with several workers, one
// that is busy may hold a job for as long as it is.
const longestLook = 2 * sentryWait

// look says that jobs are taken, until the caller calls sure. If there is a suspect it
// returns what is closed when that is over, and no job may be taken.
func (s *suspects) look() (busy <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.one == nil {
		s.looking++
	}
	return s.one
}

// lookOn is look for a job that has been taken.
func (s *suspects) lookOn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looking++
}

// sure ends a look: what was taken is no suspect, is the one, or was given back.
func (s *suspects) sure() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.looking--; s.looking == 0 && s.looked != nil {
		close(s.looked)
		s.looked = nil
	}
}

// claim makes the caller's job, at which it has looked on, the suspect, and reports whether
// there was none.
func (s *suspects) claim() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.one != nil {
		return false
	}
	s.one = make(chan struct{})
	return true
}

// alone waits until no other job is looked at, for longestLook at most, and reports whether ctx
// is still alive.
func (s *suspects) alone(ctx context.Context) bool {
	s.mu.Lock()
	looked := s.looked
	if s.looking > 0 && looked == nil {
		looked = make(chan struct{})
		s.looked = looked
	}
	s.mu.Unlock()
	if looked == nil {
		return true
	}
	select {
	case <-looked:
		return true
	case <-time.After(longestLook):
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *suspects) over() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.one)
	s.one = nil
}

// suspect reports whether a task, whose attempts were counted, is a suspect. With a single
// attempt there is none: its job must not run again.
func (q *queue) suspect(t *task) bool {
	return t.deliveries > 1 && t.attempt == q.cfg.Attempts() && t.attempt > 1 && !t.answered
}

// apart lets a task run unless it is a suspect that has to wait: then it is handed back.
// The function that it returns is for when the task is over.
func (w *worker) apart(t *task) (over func(), ok bool) {
	s := &w.q.suspects
	t.suspect = w.q.suspect(t)
	switch {
	case !t.suspect:
		t.sure(s)
		return func() {}, true
	case !s.claim():
		w.giveBack(t)
		t.sure(s)
		return nil, false
	}
	if t.sure(s); !s.alone(w.ctx) {
		w.giveBack(t)
		s.over()
		return nil, false
	}
	return s.over, true
}

// sure says once that it is known what the task is.
func (t *task) sure(s *suspects) {
	if t.unsure {
		t.unsure = false
		s.sure()
	}
}

// redelivered reports whether a message was delivered before.
func redelivered(msg *nats.Msg) bool {
	meta, err := msg.Metadata()
	return err == nil && meta.NumDelivered > 1
}

// putOff has the engine deliver a task later. That it was delivered is no attempt.
func (w *worker) putOff(t *task, d time.Duration) {
	w.kept.drop(t.msg)
	w.q.noAttempt(t.msg)
	_ = t.msg.NakWithDelay(max(d, time.Millisecond))
}
