package agents

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spillway-go/spillway/loadgen"
)

// Report is what a distributed load was.
type Report struct {
	Result   *loadgen.Result `json:"result"` // of all agents that delivered one
	Agents   []Agent         `json:"agents"` // by index
	Invalid  string          `json:"invalid,omitempty"`
	Warnings []string        `json:"warnings,omitempty"` // about starts and clocks
}

// Agent is one agent's part in it.
type Agent struct {
	Name        string          `json:"name"`
	Result      *loadgen.Result `json:"result"` // nil: it was lost
	Lost        string          `json:"lost,omitempty"`
	CPU         time.Duration   `json:"cpu_ns"`         // 0: not known
	PeakRSS     uint64          `json:"peak_rss_bytes"` // 0: not known
	Sent        uint64          `json:"bytes_sent"`
	Received    uint64          `json:"bytes_received"`
	FirstError  string          `json:"first_error,omitempty"`
	ClockOffset time.Duration   `json:"clock_offset_ns"` // of its clock from the coordinator's
	Uncertainty time.Duration   `json:"clock_uncertainty_ns"`
	ClockMoved  time.Duration   `json:"clock_moved_ns"` // by so much at least since the start
	Late        time.Duration   `json:"late_ns"`        // how long after the common start it was told of it
	LastSent    uint64          `json:"last_sent"`      // requests, by its last report
	LastHeard   time.Duration   `json:"last_heard_ns"`  // when it last said anything, in nanoseconds since the start
}

const (
	// worth is from where on a difference between agents' clocks is worth a warning.
	worth = 5 * time.Millisecond

	// maxJump is how far a clock may move between two heartbeats, beyond what any clock
	// drifts. A machine that stood still for longer makes the run invalid.
	maxJump = 50 * time.Millisecond
)

// warn says what the reader should know about the starts and the clocks.
func (r *Report) warn() {
	for i := range r.Agents {
		a := &r.Agents[i]
		if a.Late > 0 {
			r.Warnings = append(r.Warnings, fmt.Sprintf("agent %d (%s) learned of the start %v too late: its first requests came after their time, and their latencies count from it", i+1, a.Name, short(a.Late)))
		}
		if a.Uncertainty > worth {
			r.Warnings = append(r.Warnings, fmt.Sprintf("the clock of agent %d (%s) is known to ±%v only: its requests may be that far off the schedule", i+1, a.Name, short(a.Uncertainty)))
		}
		if a.ClockMoved.Abs() > worth {
			r.Warnings = append(r.Warnings, fmt.Sprintf("the clock of agent %d (%s) was %v from where it was at the start: its last requests were that far off the schedule", i+1, a.Name, short(a.ClockMoved)))
		}
	}
}

func short(d time.Duration) time.Duration {
	if d.Abs() > time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(10 * time.Microsecond)
}

// merge adds up what the agents delivered.
func (r *Report) merge() error {
	var parts []*loadgen.Result
	for i := range r.Agents {
		if own := r.Agents[i].Result; own != nil {
			parts = append(parts, own)
		}
	}
	if len(parts) == 0 {
		r.Result = &loadgen.Result{Partial: true}
		return nil
	}
	sum, err := loadgen.Merge(parts...)
	if err != nil {
		return err
	}
	sum.Partial = sum.Partial || len(parts) < len(r.Agents)
	r.Result = sum
	return nil
}

// Cost returns the processor time of all agents and their bytes.
func (r *Report) Cost() (cpu time.Duration, sent, received uint64) {
	for i := range r.Agents {
		a := &r.Agents[i]
		cpu, sent, received = cpu+a.CPU, sent+a.Sent, received+a.Received
	}
	return cpu, sent, received
}

// FirstError returns the first error that an agent reports, or nil.
func (r *Report) FirstError() error {
	for i := range r.Agents {
		if text := r.Agents[i].FirstError; text != "" {
			return fmt.Errorf("agent %d (%s): %s", i+1, r.Agents[i].Name, text)
		}
	}
	return nil
}

// invalidate notes why the run is not what was asked for.
func (r *Report) invalidate(format string, args ...any) {
	why := fmt.Sprintf(format, args...)
	if r.Invalid == "" {
		r.Invalid = why
	} else if !strings.Contains(r.Invalid, why) {
		r.Invalid += "; " + why
	}
}

// Refusal is an error of the input: an agent says why it cannot send this load.
type Refusal struct{ Agent, Why string }

func (r *Refusal) Error() string { return fmt.Sprintf("agent %s: %s", r.Agent, r.Why) }

// ErrNobody matches an error that says that there are not enough agents.
var ErrNobody = errors.New("start agents with: spillway agent --nats URL")
