package pools

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/lab/burn"
)

// The operations that a bout measures.
const (
	submitting = "submit" // jobs handed over
	refusing   = "refuse" // submissions refused by a full pool
	calling    = "call"   // results waited for
)

// bout runs several contestants with the same task, in one process and in turns, so
// that disturbances of the machine affect all of them.
type bout struct {
	What      string
	Work      time.Duration // of each job; 0: none
	Producers int
	Entries   []entry
	Rounds    int           // each runs every entry once, in a new order
	Time      time.Duration // of each measurement
	Buffer    int
	Seed      uint64
}

// entry is a contestant with a number of workers.
type entry struct {
	Contestant string
	Workers    int
	Twin       bool // the second of an A/A pair
}

// reading is one measurement, per job.
type reading struct{ NS, Allocs, Bytes float64 }

// play runs a bout and returns the readings by entry and round.
func play(ctx context.Context, b bout) ([][]reading, error) {
	work := burn.For(b.Work)
	rng := rand.New(rand.NewPCG(b.Seed, 1))
	out := make([][]reading, len(b.Entries))
	jobs := make([]int, len(b.Entries)) // of each measurement, found in its first round
	for i := range jobs {
		jobs[i] = 2 * b.Producers
	}
	for range b.Rounds {
		for _, i := range rng.Perm(len(b.Entries)) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			one, err := b.measure(b.Entries[i], work, &jobs[i])
			if err != nil {
				return nil, err
			}
			out[i] = append(out[i], one)
		}
	}
	return out, nil
}

// measure starts a contestant, warms it until a measurement takes long enough,
// measures, and ends it. It leaves nothing running for the next.
func (b bout) measure(e entry, work func(), jobs *int) (reading, error) {
	s, err := b.start(e, work)
	if err != nil {
		return reading{}, err
	}
	defer s.close()
	runtime.GC()
	for { // the last of these is the warm-up
		took := s.drive(*jobs, nil)
		if took >= b.Time/4 {
			if n := int(float64(*jobs) * float64(b.Time) / float64(took)); n < *jobs*3/4 || n > *jobs*3/2 {
				*jobs = max(n, 2*b.Producers)
			}
			break
		}
		*jobs = int(float64(*jobs) * min(8, max(2, float64(b.Time)/2/float64(max(took, 1)))))
	}
	var before, after runtime.MemStats
	took := s.drive(*jobs, func() { runtime.ReadMemStats(&before) })
	runtime.ReadMemStats(&after)
	if err := s.check(); err != nil {
		return reading{}, fmt.Errorf("%s with %d workers: %w", e.Contestant, e.Workers, err)
	}
	n := float64(*jobs)
	return reading{
		NS:     float64(took) / n,
		Allocs: float64(after.Mallocs-before.Mallocs) / n,
		Bytes:  float64(after.TotalAlloc-before.TotalAlloc) / n,
	}, nil
}

// rig is a contestant ready to be driven.
type rig struct {
	producers []func(n int) // repeats the operation n times and returns when the last is done
	check     func() error
	close     func()
}

// drive shares jobs among the producers and returns how long all of them took.
// begin is called when they are about to start; it may be nil.
func (s rig) drive(jobs int, begin func()) time.Duration {
	var ready, done sync.WaitGroup
	gate := make(chan struct{})
	for i, produce := range s.producers {
		n := jobs / len(s.producers)
		if i < jobs%len(s.producers) {
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
	if begin != nil {
		begin()
	}
	began := time.Now()
	close(gate)
	done.Wait()
	return time.Since(began)
}

func (b bout) start(e entry, work func()) (rig, error) {
	switch b.What {
	case submitting:
		return b.startSubmitting(e, work)
	case refusing:
		return b.startRefusing(e)
	case calling:
		return b.startCalling(e, work)
	}
	return rig{}, fmt.Errorf("unknown measurement %q", b.What)
}

// startSubmitting submits jobs without waiting for their end, except for the last of
// each producer: queues are FIFO, so that few jobs are still running when it ends, and
// counting every end would cost more than the submission.
func (b bout) startSubmitting(e entry, work func()) (rig, error) {
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

// startRefusing fills workers and queue; what is measured is the rest.
func (b bout) startRefusing(e entry) (rig, error) {
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

func (b bout) startCalling(e entry, work func()) (rig, error) {
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
