package limit

import (
	"fmt"
	"time"
)

// AIMDConfig configures [NewAIMD]. The zero value is the published practice.
type AIMDConfig struct {
	Timeout time.Duration // a success that took longer is a sign of overload; 0: 5 s
}

type aimd struct {
	track
	timeout  time.Duration
	seq      uint64 // admissions so far
	cut      uint64 // work admitted up to this number cannot cut the limit again
	phase    string
	slowTime float64 // time of a slow success, if it was the last sign of overload; else 0
}

// aimdBackoff is the factor on the limit at a sign of overload.
const aimdBackoff = 0.9

// NewAIMD returns a law that adds 1 to the limit after as many successes as the limit. The law
// multiplies the limit by 0.9 when a backend refuses work or work runs into its deadline. The
// scheme is additive increase, multiplicative decrease, after Chiu and Jain, "Analysis of the Increase and Decrease Algorithms for Congestion
// Avoidance in Computer Networks" (1989), as in TCP. The limit is cut at most once per round of
// work in flight.
//
// AIMD does not see a queue before work times out: a limit far too high for a good latency stays.
// Any sign of overload may cut the limit, so an outcome without information about load must not be
// reported as such a sign.
//
// The limit starts at 20 and is at most 1000. The error names an invalid figure.
func NewAIMD(cfg AIMDConfig) (Law, error) {
	law, err := newAIMD(cfg)
	if err != nil {
		return nil, err
	}
	return law, nil
}

func newAIMD(cfg AIMDConfig) (*aimd, error) {
	if cfg.Timeout < 0 {
		return nil, fmt.Errorf("limit: AIMD: Timeout is %v, want a positive time, or 0 for 5s", cfg.Timeout)
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 5 * time.Second
	}
	return &aimd{track: newTrack(firstPublished, mostPublished), timeout: cfg.Timeout, phase: "no work yet"}, nil
}

// Name returns "aimd".
func (a *aimd) Name() string { return "aimd" }

// Admit counts the work, so that the law can tell rounds of work in flight apart.
func (a *aimd) Admit(time.Duration, Load) { a.seq++ }

// Observe raises the limit after a success and cuts it after a sign of overload.
// Canceled, Failed and Unknown work changes nothing.
func (a *aimd) Observe(s Sample, load Load) {
	slow := s.Outcome == Success && s.End-s.Start > a.timeout
	sign := slow || s.Outcome == Deadline || s.Outcome == Overload
	switch {
	case sign && s.Seq <= a.cut: // admitted before the last cut
	case sign:
		a.cut, a.phase, a.slowTime = a.seq, "backing off", 0
		why := "a deadline was missed"
		switch {
		case slow:
			why, a.slowTime = "slower than the timeout", latencyOf(s)
		case s.Outcome == Overload:
			why = "refused further below"
		}
		a.move(a.value*aimdBackoff, why)
	case s.Outcome != Success:
	case busy(load, a.value):
		a.phase = "growing"
		a.move(a.value+1/a.value, "in use and no sign of overload")
	default:
		a.phase = "less than half in use"
	}
}

// State describes the effect of the last sample on the limit.
func (a *aimd) State() string {
	if a.phase == "backing off" && a.slowTime > 0 {
		return a.phase + ": " + comparison(a.slowTime, float64(a.timeout))
	}
	return a.phase
}
