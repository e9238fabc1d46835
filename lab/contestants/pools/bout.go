package main

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/lab/burn"
	"github.com/spillway-go/spillway/lab/pools"
	"github.com/spillway-go/spillway/lab/turns"
)

// opener makes a contestant ready to be driven.
type opener func(b pools.Bout, work func()) (rig, error)

// player is a contestant that is started and warmed for each block, and ended after it: it leaves
// nothing running for the next.
func (open opener) player(b pools.Bout) (turns.Player, error) {
	work := burn.For(b.Work)
	var r rig
	var drive func()
	return turns.Player{
		Name: fmt.Sprintf("%s with %d workers", b.Contestant, b.Workers),
		Ready: func(n int) (err error) {
			if r, err = open(b, work); err == nil {
				r.gather(max(n/4, 2*b.Producers))()
				drive = r.gather(n)
			}
			return err
		},
		Block: func(int) { drive() },
		Done:  func() error { return r.end() },
	}, nil
}

// rig is a contestant ready to be driven.
type rig struct {
	producers []func(n int) // repeats the operation n times and returns when the last is done
	end       func() error  // closes it; the error says what it did wrong
}

// gather shares jobs among the producers, which wait for the function that it returns;
// that returns when all of them are done.
func (r rig) gather(jobs int) (drive func()) {
	var ready, done sync.WaitGroup
	gate := make(chan struct{})
	for i, produce := range r.producers[:min(jobs, len(r.producers))] {
		n := (jobs-i-1)/len(r.producers) + 1
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-gate
			produce(n)
		})
	}
	ready.Wait()
	return func() {
		close(gate)
		done.Wait()
	}
}

// openSubmitting submits jobs and waits until all have ended. Jobs without work are not
// counted, which would cost more than the submission: queues are FIFO, so that few are
// left when the last of each producer ends. Work that many workers share by turns ends in
// any order.
func openSubmitting(b pools.Bout, work func()) (rig, error) {
	s, err := newSubmitter(b.Contestant, b.Workers, pools.Buffer, false)
	if err != nil {
		return rig{}, err
	}
	r := rig{end: func() error { s.close(); return nil }}
	usual := newJob(work)
	for range b.Producers {
		ended := make(chan struct{}, 1)
		if b.Work > 0 {
			var left atomic.Int64
			each := newJob(func() {
				work()
				if left.Add(-1) == 0 {
					ended <- struct{}{}
				}
			})
			r.producers = append(r.producers, func(n int) {
				left.Store(int64(n))
				for range n {
					s.submit(each)
				}
				<-ended
			})
			continue
		}
		last := newJob(func() { work(); ended <- struct{}{} })
		r.producers = append(r.producers, func(n int) {
			for range n - 1 {
				s.submit(usual)
			}
			s.submit(last)
			<-ended
		})
	}
	return r, nil
}

// openRefusing fills workers and queue; what is measured is the rest.
func openRefusing(b pools.Bout, _ func()) (rig, error) {
	s, err := newSubmitter(b.Contestant, b.Workers, pools.Buffer, true)
	if err != nil {
		return rig{}, err
	}
	if s.try == nil {
		return rig{}, fmt.Errorf("%s cannot refuse", b.Contestant)
	}
	hold := make(chan struct{})
	var began, accepted atomic.Int64
	held := newJob(func() { began.Add(1); <-hold })
	tried, err := fill(s, held, func() bool { return began.Load() == int64(b.Workers) })
	if err != nil {
		close(hold)
		s.close()
		return rig{}, err
	}
	r := rig{end: func() error {
		defer s.close()
		defer close(hold)
		switch n := accepted.Load(); {
		case n > 0:
			return fmt.Errorf("a full pool took %d jobs", n)
		case s.refused != nil && s.refused() != tried.Load():
			return fmt.Errorf("it counted %d refusals of %d", s.refused(), tried.Load())
		}
		return nil
	}}
	for range b.Producers {
		r.producers = append(r.producers, func(n int) {
			taken := int64(0)
			for range n {
				if s.try(held) {
					taken++
				}
			}
			accepted.Add(taken)
			tried.Add(uint64(n))
		})
	}
	return r, nil
}

// fill submits until every worker holds a job and nothing more is taken. It returns a
// count that begins with its refusals.
//
// Refusals alone do not mean full: until its last worker has taken a job, a pool makes
// room again, and on a busy machine that may take any time.
func fill(s submitter, held *job, working func() bool) (refused *atomic.Uint64, err error) {
	refused = new(atomic.Uint64)
	patience := time.Now().Add(time.Minute)
	for inARow := 0; inARow < 5; {
		if s.try(held) {
			inARow = 0
			continue
		}
		refused.Add(1)
		if working() {
			inARow++
		} else if time.Now().After(patience) {
			return nil, errors.New("it refuses, but not all of its workers have begun a job within a minute")
		}
		time.Sleep(time.Millisecond)
	}
	return refused, nil
}

func openCalling(b pools.Bout, work func()) (rig, error) {
	c, err := newCaller(b.Contestant, b.Workers, pools.Buffer, work)
	if err != nil {
		return rig{}, err
	}
	var wrong atomic.Int64
	r := rig{end: func() error {
		c.close()
		if n := wrong.Load(); n > 0 {
			return fmt.Errorf("%d answers were not what the client asked for", n)
		}
		return nil
	}}
	for range b.Producers {
		call := c.client()
		r.producers = append(r.producers, func(n int) {
			for x := range n {
				if call(x) != x+1 {
					wrong.Add(1)
				}
			}
		})
	}
	return r, nil
}
