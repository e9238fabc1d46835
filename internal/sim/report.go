package sim

import (
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/histogram"
)

// Report is the result of a run.
type Report struct {
	Total   Tally
	Classes []Tally // in the order of Scenario.Classes

	RefusedBy map[spillway.Reason]uint64
	Peak      int // most calls in the backend at once, the warm-up included

	Interval time.Duration // interval between the points of the Timeline
	Timeline []Point       // one point for each whole interval, from the start to Duration
	events   []callEvent   // if Record.events was set
}

// Tally counts attempts of callers whose first attempt came after the warm-up. When
// the run has ended, Offered = OK + Late + Failed + Refused + Left.
type Tally struct {
	Name    string
	Offered uint64 // attempts, Retries included
	Retries uint64
	OK      uint64 // done in time
	Late    uint64 // admitted, and not done when the caller left
	Failed  uint64 // admitted, and done with an error in time
	Refused uint64
	Left    uint64 // the caller left while waiting to be admitted

	// Goodput is how many calls a second succeeded between Warmup and Duration.
	Goodput float64
	// Latency is from arrival to the end of the work, for admitted calls. Refusal is from arrival
	// until the call was refused or the caller left while it waited. Both are in nanoseconds.
	Latency, Refusal histogram.Histogram
}

// Calls is how many callers arrived; each made one attempt or more.
func (t *Tally) Calls() uint64 { return t.Offered - t.Retries }

// Served is the share of the callers that succeeded, at the first attempt or a later
// one; 1 if there were no callers.
func (t *Tally) Served() float64 {
	if t.Calls() == 0 {
		return 1
	}
	return float64(t.OK) / float64(t.Calls())
}

// Point is one interval of the timeline.
type Point struct {
	At                   time.Duration // start of the interval
	Calls                int           // callers whose first attempt came in the interval
	Offered, OK, Refused int           // attempts that came, succeeded, and were refused in the interval
	// The fields below are values at the end of the interval.
	Limit     int // sum of the policies' limits over all replicas; 0: no limit
	InFlight  int // slots of the policies in use
	Queued    int // calls that wait for their policies
	InBackend int // calls in the backends, including their own queues
}

func newReport(sc *Scenario) *Report {
	r := &Report{Classes: make([]Tally, len(sc.Classes)), Interval: sc.Record.Interval}
	r.Timeline = make([]Point, 0, sc.Duration/r.Interval+1)
	for i := range r.Classes {
		r.Classes[i].Name = sc.Classes[i].Name
	}
	return r
}

// passPoints adds a point for every interval of the timeline that has ended by now.
func (r *run) passPoints(now time.Duration) {
	for r.point.At < r.sc.Duration && now-r.point.At >= r.sc.Record.Interval {
		for i := range r.replicas {
			if rep := &r.replicas[i]; rep.alive {
				limit, inFlight, queued := rep.policy.load()
				r.point.Limit += limit
				r.point.InFlight += inFlight
				r.point.Queued += queued
			}
		}
		r.point.InBackend = r.inBackend
		r.report.Timeline = append(r.report.Timeline, r.point)
		if r.sc.Record.Watch != nil {
			r.sc.Record.Watch(r.point)
		}
		r.point = Point{At: r.point.At + r.sc.Record.Interval}
	}
}

// finish computes the totals and rates.
func (r *Report) finish(s *run) {
	window := (s.sc.Duration - s.sc.Warmup).Seconds()
	t := &r.Total
	t.Name = "all"
	for i := range r.Classes {
		c := &r.Classes[i]
		t.Offered += c.Offered
		t.Retries += c.Retries
		t.OK += c.OK
		t.Late += c.Late
		t.Failed += c.Failed
		t.Refused += c.Refused
		t.Left += c.Left
		t.Goodput += c.Goodput
		t.Latency.Merge(&c.Latency)
		t.Refusal.Merge(&c.Refusal)
		c.Goodput /= window
	}
	t.Goodput /= window
	r.RefusedBy = map[spillway.Reason]uint64{}
	for reason, n := range s.rejected {
		if n > 0 {
			r.RefusedBy[spillway.Reason(reason)] = n
		}
	}
}

// Answered returns the successes between two times divided by the callers that came in that time; 1
// if none came. The successes may be of callers that came earlier. Only whole intervals of the
// timeline count.
func (r *Report) Answered(from, to time.Duration) float64 {
	var calls, good int
	for _, p := range r.Timeline {
		if p.At >= from && p.At+r.Interval <= to {
			calls, good = calls+p.Calls, good+p.OK
		}
	}
	if calls == 0 {
		return 1
	}
	return float64(good) / float64(calls)
}

// Class returns the tally of the class with that name, or nil.
func (r *Report) Class(name string) *Tally {
	for i := range r.Classes {
		if r.Classes[i].Name == name {
			return &r.Classes[i]
		}
	}
	return nil
}
