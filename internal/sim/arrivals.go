package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Arrivals determines when calls arrive. It holds no state: every run starts it from the beginning.
type Arrivals interface {
	// Next returns when call n (from 0) arrives, given that the call before it arrived at previous
	// (0 for the first); never earlier than previous. A time of end or later means that no more
	// calls arrive. r is the run's source of random numbers.
	Next(n uint64, previous, end time.Duration, r *rand.Rand) time.Duration
}

// Poisson returns the arrivals of many independent callers: rate calls a second on average.
func Poisson(rate float64) Arrivals {
	return varying{rate, func(time.Duration) float64 { return rate }}
}

// Ramp returns Poisson arrivals. Their rate changes linearly from one rate to another within a
// time, and then stays constant.
func Ramp(from, to float64, in time.Duration) Arrivals {
	return varying{max(from, to), func(t time.Duration) float64 {
		if t >= in {
			return to
		}
		return from + (to-from)*t.Seconds()/in.Seconds()
	}}
}

// Bursts returns Poisson arrivals. Their rate is burst for the first length of every period, and
// rate for the rest.
func Bursts(rate, burst float64, length, period time.Duration) Arrivals {
	if length <= 0 || period < length {
		return wrong{fmt.Errorf("Bursts of %v every %v: the length must be positive and not exceed the period", length, period)}
	}
	return varying{max(rate, burst), func(t time.Duration) float64 {
		if t%period < length {
			return burst
		}
		return rate
	}}
}

// Step is a rate that applies from a time on.
type Step struct {
	From time.Duration
	Rate float64 // calls a second
}

// Steps returns Poisson arrivals whose rate changes at the given times. The times must rise. Before
// the first step nothing arrives.
func Steps(steps ...Step) Arrivals {
	most := 0.0
	for i, s := range steps {
		if i > 0 && s.From <= steps[i-1].From {
			return wrong{fmt.Errorf("Steps: %v comes after %v: sort them by time", s.From, steps[i-1].From)}
		}
		most = max(most, s.Rate)
	}
	return varying{most, func(t time.Duration) (rate float64) {
		for _, s := range steps {
			if s.From > t {
				break
			}
			rate = s.Rate
		}
		return rate
	}}
}

type varying struct {
	most float64
	rate func(t time.Duration) float64
}

func (v varying) check() error {
	if v.rate == nil {
		return fmt.Errorf("the rate is nil: give a function of time")
	}
	return checkRate(v.most)
}

// Next draws candidates at the highest rate and keeps each with probability
// rate(at)/most.
func (v varying) Next(_ uint64, previous, end time.Duration, r *rand.Rand) time.Duration {
	at := previous
	for {
		gap := r.ExpFloat64() / v.most * 1e9
		if gap >= float64(end-at) {
			return end
		}
		at += time.Duration(gap)
		if r.Float64()*v.most <= v.rate(at) {
			return at
		}
	}
}

// Constant returns one call every 1/rate seconds, the first at once.
func Constant(rate float64) Arrivals { return constant(rate) }

type constant float64

func (c constant) check() error { return checkRate(float64(c)) }

func (c constant) Next(n uint64, _, end time.Duration, _ *rand.Rand) time.Duration {
	return time.Duration(min(math.Round(float64(n)*1e9/float64(c)), float64(end)))
}

func checkRate(rate float64) error {
	if !(rate > 0 && rate <= 1e9) {
		return fmt.Errorf("the rate is %v a second: use more than 0 and at most 1e9", rate)
	}
	return nil
}

// Request is one call of a recorded trace.
type Request struct {
	At    time.Duration // since the start of the trace
	Class int           // index into Scenario.Classes
	// Work is the time that each attempt takes at full speed. Zero draws a time from the class.
	// Capacity and the oracles use the class in either case.
	Work time.Duration
}

// Replay returns the calls of a trace, such as an access log of a service, sorted by time. Calls
// after Scenario.Duration do not arrive. The trace is not copied.
func Replay(trace []Request) Arrivals { return replay(trace) }

type replay []Request

func (t replay) check() error {
	if len(t) == 0 {
		return fmt.Errorf("Replay: the trace is empty")
	}
	for i, q := range t {
		switch {
		case q.At < 0 || q.Work < 0:
			return fmt.Errorf("Replay: request %d at %v with work %v: neither can be negative", i, q.At, q.Work)
		case i > 0 && q.At < t[i-1].At:
			return fmt.Errorf("Replay: request %d at %v comes after %v: sort the trace by time", i, q.At, t[i-1].At)
		}
	}
	return nil
}

func (t replay) Next(n uint64, _, end time.Duration, _ *rand.Rand) time.Duration {
	if n >= uint64(len(t)) {
		return end
	}
	return t[n].At
}

// wrong is the result of a constructor with invalid arguments. Run returns its error.
type wrong struct{ err error }

func (w wrong) check() error { return w.err }

func (w wrong) Next(_ uint64, _, end time.Duration, _ *rand.Rand) time.Duration { return end }

func (w wrong) Draw(*rand.Rand) time.Duration { return 0 }

func (w wrong) Mean() time.Duration { return 0 }

// positive reports whether a parameter is positive and finite.
func positive(x float64) bool { return x > 0 && !math.IsInf(x, 0) }
