package simulate

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/sim"
	"github.com/spillway-go/spillway/limit"
)

// Description is what a file holds. Its fields are those of sim.Scenario, which says more
// about them; scenarios/shop.json has them all, with what they mean.
type Description struct {
	Title    string
	Seed     uint64
	Duration time.Duration
	Warmup   time.Duration
	Arrivals Arrivals
	Classes  []Class
	Backend  Backend
	Fleet    sim.Fleet
	Retry    sim.Retry
	Changes  []sim.Change
	Trouble  *Trouble
	Policies []Policy
	Subsets  *Subsets

	Oblivious bool
}

// Arrivals are one of several kinds.
type Arrivals struct {
	Poisson  *Rate
	Constant *Rate
	Ramp     *Ramp
	Bursts   *Bursts
	Steps    []Step
}

// Ramp is sim.Ramp.
type Ramp struct {
	From, To Rate
	In       time.Duration
}

// Bursts is sim.Bursts.
type Bursts struct {
	Rate, Burst    Rate
	Length, Period time.Duration
}

// Step is sim.Step.
type Step struct {
	From time.Duration
	Rate Rate
}

// Class is sim.Class.
type Class struct {
	Name       string
	Share      float64
	Priority   spillway.Priority
	Deadline   time.Duration
	LeaveAfter *Distribution
	Service    *Distribution
	Cost       int
	ErrorRate  float64
	FastErrors bool
}

// Distribution is one of several kinds.
type Distribution struct {
	Fixed       *time.Duration
	Exponential *time.Duration
	LogNormal   *LogNormal `json:"lognormal"`
	Uniform     *Uniform
	Mixture     []Part
}

// LogNormal is sim.LogNormal.
type LogNormal struct {
	Mean  time.Duration
	Sigma float64
}

// Uniform is sim.Uniform.
type Uniform struct {
	Low, High time.Duration
}

// Part is sim.Part.
type Part struct {
	Share   float64
	Service *Distribution
}

// Backend is one of several kinds.
type Backend struct {
	NWay      *NWay
	Degrading *Degrading
	Database  *Database
}

// NWay is sim.NWay.
type NWay struct {
	Slots int
}

// Degrading is sim.Degrading.
type Degrading struct {
	Slots int
	Gamma float64
}

// Database is sim.Database.
type Database struct {
	Connections int
	CPU         int
}

// Policy is one of several kinds, with the name that it has in tables and pictures.
type Policy struct {
	Name      string
	Unlimited *struct{}
	Semaphore *Semaphore
	Limiter   *Limiter
	Oracle    *struct{}
}

// Semaphore is sim.Semaphore.
type Semaphore struct {
	Slots int
}

// Limiter is sim.Limiter with one of the laws of package limit.
type Limiter struct {
	Law        string // adaptive unless given
	Limit      int    // of the law fixed
	QueueSize  int
	MaxWait    time.Duration
	MaxRefused float64
}

// Rate is calls a second, such as 300, or a multiple of the backend's capacity, such as
// "1.5x".
type Rate struct {
	value    float64
	multiple bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *Rate) UnmarshalJSON(text []byte) error {
	err := json.Unmarshal(text, &r.value)
	if err != nil {
		var s string
		if err = json.Unmarshal(text, &s); err == nil {
			s, r.multiple = strings.CutSuffix(s, "x")
			r.value, err = strconv.ParseFloat(s, 64)
		}
		if !r.multiple {
			err = errors.New("no multiple")
		}
	}
	if err != nil || !(r.value >= 0) || math.IsInf(r.value, 0) {
		return fmt.Errorf(`%.40s is no rate: want calls a second such as 300, or a multiple of what the backend can do such as "1.5x"`, text)
	}
	return nil
}

func (r Rate) of(capacity float64) float64 {
	if r.multiple {
		return r.value * capacity
	}
	return r.value
}

// one is an error unless exactly one of the kinds is given. The fields beside them are no kinds.
func one(choice any, beside ...string) error {
	v, given := reflect.ValueOf(choice), 0
	var known []string
	for i, name := range fieldNames(v.Type()) {
		if slices.Contains(beside, name) {
			continue
		}
		known = append(known, name)
		if !v.Field(i).IsZero() {
			given++
		}
	}
	if given != 1 {
		return fmt.Errorf("%d kinds are given here: want exactly one of %s", given, list(known, ""))
	}
	return nil
}

func (a *Arrivals) check() error     { return one(*a) }
func (d *Distribution) check() error { return one(*d) }
func (b *Backend) check() error      { return one(*b) }

func (p *Policy) check() error { return one(*p, "name") }

// most is the largest number of slots: far more than a backend has calls.
const most = 1_000_000

func (s *Semaphore) check() error {
	if s.Slots < 1 || s.Slots > most {
		return fmt.Errorf("slots is %d: want 1 to %d", s.Slots, most)
	}
	return nil
}

func (l *Limiter) check() error {
	known := []string{"adaptive", "throughput", "fixed", "aimd", "gradient2"}
	switch {
	case l.Law != "" && !slices.Contains(known, l.Law):
		return fmt.Errorf("unknown law %.40q: want %s", l.Law, list(known, ""))
	case l.Law == "fixed" && (l.Limit < 1 || l.Limit > most):
		return fmt.Errorf("limit is %d: the law fixed needs one from 1 to %d", l.Limit, most)
	case l.Law != "fixed" && l.Limit != 0:
		return errors.New("limit belongs to the law fixed: the others find theirs")
	}
	return nil
}

// law makes the law. The settings are the laws' own defaults, which are valid.
func (l *Limiter) law() (law limit.Law) {
	switch l.Law {
	case "throughput":
		law = limit.NewAdaptiveForThroughput()
	case "fixed":
		law = limit.NewFixed(l.Limit)
	case "aimd":
		law, _ = limit.NewAIMD(limit.AIMDConfig{})
	case "gradient2":
		law, _ = limit.NewGradient2(limit.Gradient2Config{})
	default:
		law = limit.NewAdaptive()
	}
	return law
}

// policies are what the simulator takes: of several the one that does best. An oracle tries
// both orders, because none is the better one under every load.
func (p *Policy) policies() []sim.Policy {
	switch {
	case p.Unlimited != nil:
		return []sim.Policy{sim.Unlimited()}
	case p.Semaphore != nil:
		return []sim.Policy{sim.Semaphore(p.Semaphore.Slots)}
	case p.Oracle != nil:
		return []sim.Policy{sim.Oracle(), sim.OracleNewestFirst()}
	}
	l := p.Limiter
	return []sim.Policy{sim.Limiter(l.law, sim.Settings{QueueSize: l.QueueSize, MaxWait: l.MaxWait, MaxRefused: l.MaxRefused})}
}

// kind is the name of a policy that was given none.
func (p *Policy) kind() string {
	switch {
	case p.Unlimited != nil:
		return "unlimited"
	case p.Semaphore != nil:
		return fmt.Sprint("semaphore of ", p.Semaphore.Slots)
	case p.Oracle != nil:
		return "oracle"
	case p.Limiter.Law == "fixed":
		return fmt.Sprint("limiter, fixed at ", p.Limiter.Limit)
	case p.Limiter.Law != "":
		return "limiter, " + p.Limiter.Law
	}
	return "limiter"
}

// distribution is what the simulator takes, nil for nil.
func (d *Distribution) distribution() sim.Distribution {
	switch {
	case d == nil:
		return nil
	case d.Fixed != nil:
		return sim.Fixed(*d.Fixed)
	case d.Exponential != nil:
		return sim.Exponential(*d.Exponential)
	case d.LogNormal != nil:
		return sim.LogNormal(d.LogNormal.Mean, d.LogNormal.Sigma)
	case d.Uniform != nil:
		return sim.Uniform(d.Uniform.Low, d.Uniform.High)
	}
	var parts []sim.Part
	for _, p := range d.Mixture {
		parts = append(parts, sim.Part{Share: p.Share, Service: p.Service.distribution()})
	}
	return sim.Mixture(parts...)
}

func (b *Backend) backend() sim.Backend {
	switch {
	case b.NWay != nil:
		return sim.NWay(b.NWay.Slots)
	case b.Degrading != nil:
		return sim.Degrading(b.Degrading.Slots, b.Degrading.Gamma)
	case b.Database != nil:
		return sim.Database(b.Database.Connections, b.Database.CPU)
	}
	return sim.Backend{}
}

// arrivals are what the simulator takes, with their highest rate; nil if there are none.
func (a *Arrivals) arrivals(capacity float64) (sim.Arrivals, float64) {
	switch {
	case a.Poisson != nil:
		rate := a.Poisson.of(capacity)
		return sim.Poisson(rate), rate
	case a.Constant != nil:
		rate := a.Constant.of(capacity)
		return sim.Constant(rate), rate
	case a.Ramp != nil:
		from, to := a.Ramp.From.of(capacity), a.Ramp.To.of(capacity)
		return sim.Ramp(from, to, a.Ramp.In), max(from, to)
	case a.Bursts != nil:
		rate, burst := a.Bursts.Rate.of(capacity), a.Bursts.Burst.of(capacity)
		return sim.Bursts(rate, burst, a.Bursts.Length, a.Bursts.Period), max(rate, burst)
	case a.Steps != nil:
		var steps []sim.Step
		top := 0.0
		for _, s := range a.Steps {
			rate := s.Rate.of(capacity)
			steps, top = append(steps, sim.Step{From: s.From, Rate: rate}), max(top, rate)
		}
		return sim.Steps(steps...), top
	}
	return nil, 0
}

// scenario is what the simulator takes, without its policy, and the highest rate of its
// arrivals.
func (s *Description) scenario() (sim.Scenario, float64) {
	out := sim.Scenario{
		Seed: s.Seed, Duration: s.Duration, Warmup: s.Warmup, Backend: s.Backend.backend(), Fleet: s.Fleet, Retry: s.Retry, Changes: s.Changes, Oblivious: s.Oblivious,
	}
	for _, c := range s.Classes {
		out.Classes = append(out.Classes, sim.Class{
			Name: c.Name, Share: c.Share, Priority: c.Priority, Deadline: c.Deadline, LeaveAfter: c.LeaveAfter.distribution(),
			Service: c.Service.distribution(), Cost: c.Cost, ErrorRate: c.ErrorRate, FastErrors: c.FastErrors,
		})
	}
	arrivals, rate := s.Arrivals.arrivals(out.Capacity())
	out.Arrivals = arrivals
	return out, rate
}
