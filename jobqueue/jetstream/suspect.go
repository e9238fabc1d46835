package jetstream

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/spillway-go/spillway/jobqueue/internal/engine"
)

// A suspect is a job at its last attempt whose previous attempt has no recorded end: the process
// died, or the engine was away. The job may be the cause. When a process dies, each job that it
// held has lost an attempt. So suspects run one at a time. While a suspect runs, the process takes
// no other job. A suspect that is lost holds up no other job: its handler may never return.
//
// suspects holds a process's suspect: none, a suspect that waits until all taken jobs are checked,
// or a running suspect.
type suspects struct {
	mu      sync.Mutex
	one     chan struct{} // closed when the suspect is over; nil: there is none
	looking int           // pending looks at jobs that may be suspects
	looked  chan struct{} // closed when looking is 0; nil: no goroutine waits for it
}

// longestLook bounds how long a suspect waits for other jobs. If a process has several workers, a
// busy worker may hold an unchecked job for as long as it is busy.
const longestLook = 2 * sentryWait

// announce announces that the caller takes jobs, until the caller calls sure. If there is a suspect,
// announce returns a channel that closes when the suspect is over, and the caller must take no job.
func (s *suspects) announce() (busy <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.one == nil {
		s.looking++
	}
	return s.one
}

// lookOn is announce for a job that has already been taken.
func (s *suspects) lookOn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looking++
}

// sure ends a look: each taken job is no suspect, is the claimed suspect, or was given back.
func (s *suspects) sure() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.looking--; s.looking == 0 && s.looked != nil {
		close(s.looked)
		s.looked = nil
	}
}

// claim makes the caller's job the suspect, and reports whether there was no other suspect. The
// caller has called lookOn for the job.
func (s *suspects) claim() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.one != nil {
		return false
	}
	s.one = make(chan struct{})
	return true
}

// alone waits until no other job is unchecked, for longestLook at most, and reports whether ctx is
// still alive.
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

// suspect reports whether a task is a suspect. The task's attempts must be counted already. If the
// policy permits a single attempt, there is no suspect: the job must not run again.
func (q *queue) suspect(t *task) bool {
	return t.deliveries > 1 && t.attempt == engine.Attempts(q.cfg.Policy) && t.attempt > 1 && !t.answered
}

// apart lets a task run. If the task is a suspect that must wait, apart hands it back. The caller
// calls the returned function when the task is over or lost; further calls do nothing.
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
	return sync.OnceFunc(s.over), true
}

// sure ends the task's look, once, when it is known whether the task is a suspect.
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

// putOff makes the engine deliver a task later. This delivery does not count as an attempt.
func (w *worker) putOff(t *task, d time.Duration) {
	if w.kept.release(t.msg) {
		w.q.counters.lost.Add(1)
		return
	}
	w.q.noAttempt(t.msg)
	_ = t.msg.NakWithDelay(max(d, time.Millisecond))
}
