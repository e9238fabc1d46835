package sim

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/spillway-go/spillway"
)

// Scenario is one experiment: the callers, the backend, and the policy between
// them. It holds no state, so it may be copied, changed and run again, also by
// several goroutines at once.
type Scenario struct {
	Seed     uint64        // seed of all random draws
	Duration time.Duration // how long calls arrive; calls in flight at the end are completed
	Warmup   time.Duration // calls that arrive before Warmup are simulated, but not counted
	Arrivals Arrivals
	Classes  []Class // at least one
	Backend  Backend // backend of each replica
	Policy   Policy  // policy of each replica; the zero value is the adaptive limiter without configuration
	Fleet    Fleet   // the zero value: one replica
	// Oblivious means that callers do not send their deadlines, and that the service does not
	// notice when they leave. It does the work of callers that have left all the same.
	Oblivious bool
	Retry     Retry    // the zero value: callers do not retry
	Changes   []Change // changes of the replicas, in any order
	Record    Record
}

// Class is one kind of call: a route, a tenant, a customer's importance.
type Class struct {
	Name     string
	Share    float64 // share of the calls, relative to the other classes; zero in all classes: equal shares
	Priority spillway.Priority
	Kind     string        // kind for the limiter (spillway.WithKind); empty: none
	Deadline time.Duration // time from arrival until the caller leaves; zero: the caller waits forever
	// LeaveAfter is how long callers wait before they give up, regardless of the deadline. Nil:
	// they do not give up.
	LeaveAfter Distribution
	Service    Distribution // time that the work takes at full speed
	Cost       int          // slots of the limiter; zero means one
	// ErrorRate is the share of the work that fails. It fails at its end or, with FastErrors, after
	// 0.5 to 1.5 ms.
	ErrorRate  float64
	FastErrors bool
}

// Change changes replicas while they run: all, or those that Zone and Count choose.
// Zero fields leave a value as it is.
type Change struct {
	At    time.Duration
	Slots int     // slots of the backend; for a Database, its cpu
	Speed float64 // 1 is full speed: 0.5 makes all work take twice as long

	Zone  int // only the replicas of this zone, counted from 1
	Count int // only the first Count replicas; zero: all

	Stop    bool // the replicas crash, and their calls are lost
	Start   bool // stopped replicas come back
	Restart int  // the replicas restart, Restart at a time, with the times of Fleet
}

// Retry sets how callers retry a call that was refused, failed, or took too long. Each attempt has
// its own deadline and its own draw of work; a recorded call has the same work each time.
type Retry struct {
	Attempts   int           // most attempts, including the first
	Backoff    time.Duration // wait before the second attempt, then doubled; the actual wait is half to all of it
	MaxBackoff time.Duration // zero: no bound
	Respect    bool          // wait at least as long as the limiter advises (Rejection.RetryAfter)
	// Budget is how many retries each success adds to the client's budget, which starts at ten and
	// holds at most ten. Zero means no budget: only Attempts bounds the retries.
	Budget  float64
	Clients int // number of clients, which send the calls in turn; zero means 1
}

// Record selects what a Report holds beyond its totals.
type Record struct {
	Interval time.Duration // interval of the timeline; zero means 100 ms
	Watch    func(Point)   // called with each point of the timeline during the run
	events   bool          // whether Report.events is filled, for tests
}

const (
	defaultInterval = 100 * time.Millisecond
	mostPoints      = 10_000_000
	mostClients     = 10_000_000
)

// Capacity returns how many calls a second the backends of all replicas serve at full speed, for
// the mix of the classes and before any Change.
func (s Scenario) Capacity() float64 {
	mean := s.mean().Seconds()
	if mean <= 0 {
		return 0
	}
	return float64(s.Backend.parallel(s.Backend.slots)) / mean * float64(max(s.Fleet.Replicas, 1))
}

// mean returns the mean work of a call.
func (s Scenario) mean() time.Duration {
	var sum, shares float64
	for _, c := range s.Classes {
		if c.Service != nil {
			sum += c.Share * float64(c.Service.Mean())
			shares += c.Share
		}
	}
	if shares > 0 {
		return time.Duration(sum / shares)
	}
	for _, c := range s.Classes {
		if c.Service != nil {
			sum += float64(c.Service.Mean()) / float64(len(s.Classes))
		}
	}
	return time.Duration(sum)
}

// normal returns the scenario with its defaults filled in, or an error that names the invalid
// field.
func (s Scenario) normal() (Scenario, error) {
	fail := func(format string, a ...any) (Scenario, error) {
		return Scenario{}, fmt.Errorf("sim: "+format, a...)
	}
	switch {
	case s.Duration <= 0:
		return fail("Duration is %v: say how long calls arrive, for example 40*time.Second", s.Duration)
	case s.Warmup < 0 || s.Warmup >= s.Duration:
		return fail("Warmup is %v: it must be at least 0 and shorter than Duration, %v", s.Warmup, s.Duration)
	case s.Arrivals == nil:
		return fail("Arrivals is nil: use for example Poisson(1.5 * scenario.Capacity())")
	case len(s.Classes) == 0:
		return fail("no Classes: add at least one, with its Service")
	case s.Record.Interval < 0:
		return fail("Record.Interval is %v: it cannot be negative (zero means %v)", s.Record.Interval, defaultInterval)
	}
	if err := check(s.Arrivals); err != nil {
		return fail("Arrivals: %w", err)
	}
	s.Record.Interval = cmp.Or(s.Record.Interval, defaultInterval)
	if s.Duration/s.Record.Interval > mostPoints {
		return fail("Record.Interval of %v makes more than ten million points: use a longer one", s.Record.Interval)
	}
	s.Classes = slices.Clone(s.Classes)
	shares := 0.0
	for i := range s.Classes {
		c := &s.Classes[i]
		if err := c.check(); err != nil {
			return fail("class %d (%q): %w", i, c.Name, err)
		}
		c.Cost = max(c.Cost, 1)
		shares += c.Share
	}
	for i := range s.Classes {
		if c := &s.Classes[i]; shares == 0 {
			c.Share = 1 / float64(len(s.Classes))
		} else {
			c.Share /= shares
		}
	}
	if r, ok := s.Arrivals.(replay); ok {
		for i, q := range r {
			if q.Class < 0 || q.Class >= len(s.Classes) {
				return fail("Arrivals: request %d is of class %d: there are %d Classes, counted from 0", i, q.Class, len(s.Classes))
			}
		}
	}
	if err := s.Backend.check(); err != nil {
		return fail("Backend: %w", err)
	}
	if err := s.Policy.check(); err != nil {
		return fail("Policy: %w", err)
	}
	if err := s.Retry.check(); err != nil {
		return fail("Retry: %w", err)
	}
	if err := s.Fleet.check(); err != nil {
		return fail("Fleet: %w", err)
	}
	s.Fleet = s.Fleet.normal()
	s.Changes = slices.Clone(s.Changes)
	slices.SortStableFunc(s.Changes, func(a, b Change) int { return int(max(min(a.At-b.At, 1), -1)) })
	for i, c := range s.Changes {
		if err := c.check(i, s.Fleet); err != nil {
			return fail("Changes: %w", err)
		}
	}
	return s, nil
}

func (c *Class) check() error {
	switch {
	case !(c.Share >= 0) || math.IsInf(c.Share, 0):
		return fmt.Errorf("its Share is %v: use a number of at least 0", c.Share)
	case c.Priority < spillway.Low || c.Priority > spillway.Critical:
		return fmt.Errorf("its Priority is %d: use spillway.Low to spillway.Critical", c.Priority)
	case c.Deadline < 0:
		return fmt.Errorf("its Deadline is %v: use a positive time, or 0 for callers that wait forever", c.Deadline)
	case c.Service == nil:
		return fmt.Errorf("its Service is nil: use for example Exponential(20*time.Millisecond)")
	case c.Cost < 0:
		return fmt.Errorf("its Cost is %d: use 1 or more (zero means 1)", c.Cost)
	case !(c.ErrorRate >= 0 && c.ErrorRate <= 1):
		return fmt.Errorf("its ErrorRate is %v: use a share from 0 to 1", c.ErrorRate)
	}
	if err := check(c.Service); err != nil {
		return fmt.Errorf("its Service: %w", err)
	}
	if c.LeaveAfter != nil {
		if err := check(c.LeaveAfter); err != nil {
			return fmt.Errorf("its LeaveAfter: %w", err)
		}
	}
	return nil
}

func (r *Retry) check() error {
	switch {
	case r.Attempts < 0:
		return fmt.Errorf("its Attempts is %d: use 2 or more for callers that try again", r.Attempts)
	case r.Backoff < 0 || r.MaxBackoff < 0:
		return fmt.Errorf("its Backoff is %v and MaxBackoff %v: neither can be negative", r.Backoff, r.MaxBackoff)
	case !(r.Budget >= 0) || math.IsInf(r.Budget, 0):
		return fmt.Errorf("its Budget is %v: use retries per success, such as 0.1, or 0 for no budget", r.Budget)
	case r.Clients < 0 || r.Clients > mostClients:
		return fmt.Errorf("its Clients is %d: use 1 to %d (zero means 1)", r.Clients, mostClients)
	}
	return nil
}

// check calls the check method of arrivals or a distribution, if it has one. Those of this package
// have one.
func check(v any) error {
	if c, ok := v.(interface{ check() error }); ok {
		return c.check()
	}
	return nil
}
