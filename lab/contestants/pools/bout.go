package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/lab/burn"
	"github.com/spillway-go/spillway/lab/pools"
	"github.com/spillway-go/spillway/lab/turns"
)

// play runs a bout and returns the readings by entry and round.
func play(ctx context.Context, b pools.Bout) ([][]turns.Reading, error) {
	work := burn.For(b.Work)
	var players []turns.Player
	for _, e := range b.Entries {
		players = append(players, player(b, e, work))
	}
	return turns.Play(ctx, turns.Config{Rounds: b.Rounds, Time: b.Time, Least: 2 * b.Producers, Seed: b.Seed}, players)
}

// player is a contestant that is started and warmed for each block, and ended after it:
// it leaves nothing running for the next.
func player(b pools.Bout, e pools.Entry, work func()) turns.Player {
	var r rig
	var drive func()
	return turns.Player{
		Name: fmt.Sprintf("%s with %d workers", e.Contestant, e.Workers),
		Ready: func(n int) (err error) {
			if r, err = open(b, e, work); err != nil {
				return err
			}
			r.gather(max(n/4, 2*b.Producers))()
			drive = r.gather(n)
			return nil
		},
		Block: func(int) { drive() },
		Done: func() error {
			defer r.close()
			return r.check()
		},
	}
}

// rig is a contestant ready to be driven.
type rig struct {
	producers []func(n int) // repeats the operation n times and returns when the last is done
	check     func() error
	close     func()
}

// gather shares jobs among the producers, which wait for the function that it returns;
// that returns when all of them are done.
func (r rig) gather(jobs int) (drive func()) {
	var ready, done sync.WaitGroup
	gate := make(chan struct{})
	for i, produce := range r.producers {
		n := jobs / len(r.producers)
		if i < jobs%len(r.producers) {
			n++
		}
		if n == 0 {
			break
		}
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

func open(b pools.Bout, e pools.Entry, work func()) (rig, error) {
	switch b.What {
	case pools.Submitting:
		return openSubmitting(b, e, work)
	case pools.Refusing:
		return openRefusing(b, e)
	case pools.Calling:
		return openCalling(b, e, work)
	}
	return rig{}, fmt.Errorf("unknown measurement %q", b.What)
}

// openSubmitting submits jobs without waiting for their end, except for the last of
// each producer: queues are FIFO, so that few jobs are still running when it ends, and
// counting every end would cost more than the submission.
func openSubmitting(b pools.Bout, e pools.Entry, work func()) (rig, error) {
	s, err := newSubmitter(e.Contestant, e.Workers, b.Buffer, false)
	if err != nil {
		return rig{}, err
	}
	st := rig{close: s.close, check: func() error { return nil }}
	usual := newJob(work)
	for range b.Producers {
		ended := make(chan struct{}, 1)
		last := newJob(func() { work(); ended <- struct{}{} })
		st.producers = append(st.producers, func(n int) {
			for range n - 1 {
				s.submit(usual)
			}
			s.submit(last)
			<-ended
		})
	}
	return st, nil
}

// openRefusing fills workers and queue; what is measured is the rest.
func openRefusing(b pools.Bout, e pools.Entry) (rig, error) {
	s, err := newSubmitter(e.Contestant, e.Workers, b.Buffer, true)
	if err != nil {
		return rig{}, err
	}
	if s.try == nil {
		return rig{}, fmt.Errorf("%s cannot refuse", e.Contestant)
	}
	hold := make(chan struct{})
	held := newJob(func() { <-hold })
	fill(s, held)
	var accepted, tried atomic.Int64
	st := rig{close: func() { close(hold); s.close() }}
	before := uint64(0)
	if s.refused != nil {
		before = s.refused()
	}
	st.check = func() error {
		switch n := accepted.Load(); {
		case n > 0:
			return fmt.Errorf("a full pool took %d jobs", n)
		case s.refused != nil && s.refused()-before != uint64(tried.Load()):
			return fmt.Errorf("it counted %d refusals of %d", s.refused()-before, tried.Load())
		}
		return nil
	}
	for range b.Producers {
		st.producers = append(st.producers, func(n int) {
			taken := int64(0)
			for range n {
				if s.try(held) {
					taken++
				}
			}
			accepted.Add(taken)
			tried.Add(int64(n))
		})
	}
	return st, nil
}

// fill submits until nothing more is taken, also after the workers have had
// time to take what they can.
func fill(s submitter, held *job) {
	for refusals := 0; refusals < 5; {
		if s.try(held) {
			refusals = 0
			continue
		}
		refusals++
		time.Sleep(time.Millisecond)
	}
}

func openCalling(b pools.Bout, e pools.Entry, work func()) (rig, error) {
	c, err := newCaller(e.Contestant, e.Workers, b.Buffer, work)
	if err != nil {
		return rig{}, err
	}
	var wrong atomic.Int64
	st := rig{close: c.close, check: func() error {
		if wrong.Load() > 0 {
			return errPayload
		}
		return nil
	}}
	for range b.Producers {
		call := c.client()
		st.producers = append(st.producers, func(n int) {
			for x := range n {
				if call(x) != x+1 {
					wrong.Add(1)
				}
			}
		})
	}
	return st, nil
}
