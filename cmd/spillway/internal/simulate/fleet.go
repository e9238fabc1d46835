package simulate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/internal/sim"
)

var balancers = []string{"round_robin", "least_loaded", "power_of_two"}

// balancer is the one of a name.
func balancer(text []byte) (sim.Balancer, error) {
	i := slices.Index(balancers, strings.Trim(string(text), `"`))
	if i < 0 {
		return 0, fmt.Errorf("%.40s is no balancer: want %s", text, list(balancers, ""))
	}
	return sim.Balancer(i), nil
}

// Trouble is when something goes wrong, for the figures before, during and after it.
type Trouble struct {
	From, To time.Duration
}

func (t *Trouble) check(d time.Duration) error {
	if t.From <= 0 || t.To <= t.From || t.To >= d {
		return fmt.Errorf("the trouble is from %v to %v: it must begin after 0s, and end later and before the duration, %v", t.From, t.To, d)
	}
	return nil
}

// Subsets are protections of which every set is tried, from none to all.
type Subsets struct {
	Limiter   *Limiter
	Deadlines *struct{}
	Budget    float64
	Advice    *struct{}
}

func (s *Subsets) check() error {
	if len(s.known()) == 0 {
		return errors.New("subsets is empty: want one or more of limiter, deadlines, budget and advice")
	}
	return nil
}

// contender is a policy, and the protections beside it.
type contender struct {
	Policy
	informed bool    // the service knows deadlines and who has left
	budget   float64 // for retries
	respect  bool    // of the limiter's advice
}

// protection is one that can be added.
type protection struct {
	name string
	add  func(*contender)
}

func (s *Subsets) known() (all []protection) {
	if s.Limiter != nil {
		all = append(all, protection{"limiter", func(c *contender) { c.Unlimited, c.Limiter = nil, s.Limiter }})
	}
	if s.Deadlines != nil {
		all = append(all, protection{"deadlines", func(c *contender) { c.informed = true }})
	}
	if s.Budget != 0 {
		all = append(all, protection{"budget", func(c *contender) { c.budget = s.Budget }})
	}
	if s.Advice != nil {
		all = append(all, protection{"advice", func(c *contender) { c.respect = true }})
	}
	return all
}

// sets are contenders with every set of the protections.
func (s *Subsets) sets() (all []contender) {
	known := s.known()
	for set := range 1 << len(known) {
		p := contender{Policy: Policy{Unlimited: &struct{}{}}}
		var names []string
		for i, k := range known {
			if set&(1<<i) > 0 {
				k.add(&p)
				names = append(names, k.name)
			}
		}
		if p.Name = strings.Join(names, " + "); set == 0 {
			p.Name = "nothing"
		}
		all = append(all, p)
	}
	return all
}

// under is the scenario with the protections.
func (p *contender) under(s sim.Scenario) sim.Scenario {
	if p.informed {
		s.Oblivious = false
	}
	if p.budget != 0 {
		s.Retry.Budget = p.budget
	}
	if p.respect {
		s.Retry.Respect = true
	}
	return s
}

// Answered is the share of the callers that got a good answer, in the three times around
// a trouble. Retries succeed later than their callers came, so it may be above 1.
type Answered struct {
	Before    float64 `json:"before"`
	During    float64 `json:"during"`
	End       float64 `json:"end"` // in the last quarter of the time after it
	Recovered bool    `json:"recovered"`
}

// back is the share from which on a service has recovered.
const back = 0.9

func (t *Trouble) answered(r *sim.Report, d time.Duration) *Answered {
	a := &Answered{Before: r.Answered(t.From/2, t.From), During: r.Answered(t.From, t.To), End: r.Answered(d-(d-t.To)/4, d)}
	a.Recovered = a.End >= back*a.Before
	return a
}
