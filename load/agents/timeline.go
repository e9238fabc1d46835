package agents

import (
	"time"

	"github.com/spillway-go/spillway/loadgen"
)

// timeline makes one live view of those of several agents. A step is complete when all
// agents that still run have reported it.
type timeline struct {
	interval time.Duration
	agents   []progress
}

// progress is what is known of an agent.
type progress struct {
	waiting []loadgen.Snapshot // not yet in a step
	last    loadgen.Snapshot   // its counts so far, in a step
	ended   bool               // no more will come
}

func newTimeline(agents int, interval time.Duration) *timeline {
	return &timeline{interval, make([]progress, agents)}
}

// add takes a snapshot of agent i.
func (t *timeline) add(i int, s loadgen.Snapshot) {
	t.agents[i].waiting = append(t.agents[i].waiting, s)
}

// end says that agent i will report nothing more. What it sent remains in the counts.
func (t *timeline) end(i int) { t.agents[i].ended = true }

// next returns the next step if it is complete.
func (t *timeline) next() (step loadgen.Snapshot, ok bool) {
	var until time.Duration
	for i := range t.agents {
		p := &t.agents[i]
		if len(p.waiting) > 0 {
			until, ok = max(until, p.waiting[0].Elapsed), true
		} else if !p.ended {
			return step, false
		}
	}
	if !ok {
		return step, false
	}
	// An agent that missed a beat is a step ahead with its next report: half an
	// interval more brings them together again.
	for i := range t.agents {
		p := &t.agents[i]
		for len(p.waiting) > 0 && p.waiting[0].Elapsed <= until+t.interval/2 {
			s := &p.waiting[0]
			step.Latency.Merge(&s.Latency)
			step.Lag.Merge(&s.Lag)
			p.last = loadgen.Snapshot{Elapsed: s.Elapsed, Sent: s.Sent, InFlight: s.InFlight, Outcomes: s.Outcomes}
			p.waiting = p.waiting[1:]
		}
		step.Elapsed = max(step.Elapsed, p.last.Elapsed)
		step.Sent += p.last.Sent
		step.InFlight += p.last.InFlight
		for o, n := range p.last.Outcomes {
			step.Outcomes[o] += n
		}
	}
	return step, true
}
