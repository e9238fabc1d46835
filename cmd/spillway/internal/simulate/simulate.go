// Package simulate runs the simulator on a scenario from a file, under one policy after
// another with the same arrivals, and shows what came of it.
//
// decode.go reads the file, scenario.go says what may be in it, simulate.go runs it, and
// show.go makes the table and the page.
package simulate

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/internal/sim"
)

//go:embed scenarios
var files embed.FS

// Builtin are the names of the scenarios that need no file.
func Builtin() (names []string) {
	entries, err := fs.ReadDir(files, "scenarios")
	if err != nil {
		panic(err) // it is embedded
	}
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".json"))
	}
	return names
}

// Source is the text of a scenario: of the one with that name, or of that file.
func Source(name string) ([]byte, error) {
	if slices.Contains(Builtin(), name) {
		return files.ReadFile("scenarios/" + name + ".json")
	}
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no file %s, and no scenario of that name: built in are %s", name, strings.Join(Builtin(), ", "))
	}
	return text, err
}

// Scenario is one that was read and checked.
type Scenario struct {
	Description
	contenders []contender
	text       []byte // that it was read from, without comments
	instead    Instead
}

// mostCalls is the size of a scenario: some minutes of one processor for each policy.
const mostCalls = 100_000_000

// Parse reads a scenario and checks it. The error is one line that says what is wrong and,
// where it can, in which line.
func Parse(text []byte) (*Scenario, error) { return ParseWith(text, Instead{}) }

// Instead is what a user asks for in place of what the scenario says.
type Instead struct {
	Replicas int    `json:"replicas,omitempty"` // 0: as it says
	Load     string `json:"load,omitempty"`     // calls a second, or a multiple such as "0.7x"; empty: as it says
}

func (i Instead) change(d *Description) error {
	if i.Replicas != 0 {
		d.Fleet.Replicas = i.Replicas
	}
	if i.Load == "" {
		return nil
	}
	if d.Arrivals.Poisson == nil {
		return errors.New("load: the arrivals of this scenario are of another kind than poisson: change them in a file")
	}
	rate := &Rate{}
	text := i.Load
	if strings.HasSuffix(text, "x") {
		text = `"` + text + `"`
	}
	if err := rate.UnmarshalJSON([]byte(text)); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	d.Arrivals.Poisson = rate
	return nil
}

// ParseWith is Parse with something else in the place of what the text says.
func ParseWith(text []byte, instead Instead) (*Scenario, error) {
	text = uncommented(text)
	s := &Scenario{text: text, instead: instead}
	if err := decode(text, &s.Description); err != nil {
		return nil, err
	}
	if err := instead.change(&s.Description); err != nil {
		return nil, err
	}
	if err := one(s.Arrivals); err != nil {
		return nil, fmt.Errorf("arrivals: %w", err)
	}
	if err := one(s.Backend); err != nil {
		return nil, fmt.Errorf("backend: %w", err)
	}
	switch {
	case s.Subsets != nil && len(s.Policies) > 0:
		return nil, errors.New("there are policies and subsets: want one of them")
	case s.Subsets != nil:
		s.contenders = s.Subsets.sets()
		for _, c := range s.contenders {
			s.Policies = append(s.Policies, c.Policy)
		}
	case len(s.Policies) == 0:
		s.Policies = []Policy{{Unlimited: &struct{}{}}, {Limiter: &Limiter{}}}
	}
	for i := range s.Policies {
		p := &s.Policies[i]
		if p.Name == "" {
			p.Name = p.kind()
		}
		if slices.ContainsFunc(s.Policies[:i], func(q Policy) bool { return q.Name == p.Name }) {
			return nil, fmt.Errorf("two policies are called %q: give them names", p.Name)
		}
		if s.Subsets == nil {
			s.contenders = append(s.contenders, contender{Policy: *p})
		}
	}
	whole, rate := s.scenario()
	if whole.Duration <= 0 {
		return nil, fmt.Errorf("the duration is %v: say how long calls arrive, such as \"60s\"", whole.Duration)
	}
	if whole.Warmup < 0 || whole.Warmup >= whole.Duration {
		return nil, fmt.Errorf("the warmup is %v: it cannot be negative, and must be shorter than the duration, %v", whole.Warmup, whole.Duration)
	}
	if s.Trouble != nil {
		if err := s.Trouble.check(s.Duration); err != nil {
			return nil, err
		}
	}
	// The simulator checks the rest when it begins, here a run of a nanosecond. Without a
	// mean of the work there is no capacity, and so no rate to complain about.
	moment := whole
	moment.Duration, moment.Warmup = 1, 0
	for _, arrivals := range []sim.Arrivals{sim.Poisson(1), whole.Arrivals} {
		for _, p := range s.contenders {
			moment.Arrivals, moment.Policy = arrivals, p.policies()[0]
			if _, err := sim.Run(p.under(moment)); err != nil {
				return nil, errors.New(strings.TrimPrefix(err.Error(), "sim: "))
			}
		}
	}
	if calls := rate * whole.Duration.Seconds() * float64(max(whole.Retry.Attempts, 1)); calls > mostCalls {
		return nil, fmt.Errorf("up to %.0f million calls are too many: make the duration shorter, the rate lower or the attempts fewer, so that there are at most %d million", calls/1e6, mostCalls/1_000_000)
	}
	return s, nil
}

// Schema names the layout of Result in JSON.
const Schema = "spillway/sim/v1"

// Result is what came of a scenario.
type Result struct {
	Schema   string          `json:"schema"`
	Scenario json.RawMessage `json:"scenario"`            // as it was given
	Instead  *Instead        `json:"instead,omitempty"`   // of what it says
	Capacity float64         `json:"capacity_per_second"` // of the backend at full speed
	Outcomes []Outcome       `json:"outcomes"`            // by policy
	Partial  bool            `json:"partial,omitempty"`   // policies are missing

	scenario *Scenario
}

// Outcome is what a policy made of it.
type Outcome struct {
	Policy    string            `json:"policy"`
	Total     Tally             `json:"total"`
	Classes   []Tally           `json:"classes"`
	RefusedBy map[string]uint64 `json:"refused_by,omitempty"`
	Peak      int               `json:"peak_in_backend"` // most calls at once, the warm-up included
	Answered  *Answered         `json:"answered,omitempty"`
	Timeline  []Point           `json:"timeline"`
}

// Point is an interval of the timeline.
type Point struct {
	At       float64 `json:"at"` // its end, in seconds
	Calls    int     `json:"calls"`
	Offered  int     `json:"offered"`
	OK       int     `json:"ok"`
	Refused  int     `json:"refused"`
	Limit    int     `json:"limit,omitempty"` // at its end, like those below; 0: there is none
	InFlight int     `json:"in_flight"`
	Queued   int     `json:"queued"`
	Backend  int     `json:"in_backend"`
}

// Tally counts attempts of callers that came after the warm-up, as sim.Tally does. A
// figure that there is not is null.
type Tally struct {
	Name    string   `json:"name"`
	Goodput float64  `json:"goodput_per_second"`
	Callers uint64   `json:"callers"`
	Served  *float64 `json:"served"` // share of the callers, with their retries
	Offered uint64   `json:"offered"`
	OK      uint64   `json:"ok"`
	Late    uint64   `json:"late"`
	Failed  uint64   `json:"failed"`
	Refused uint64   `json:"refused"`
	Left    uint64   `json:"left"`
	P50     *float64 `json:"p50_ms"` // of what was admitted
	P99     *float64 `json:"p99_ms"`
}

// points is how many a timeline has: as many as a picture can show.
const points = 150

// Run simulates the scenario under each of its policies. progress hears how far each is.
// When ctx ends, the result has the policies that were finished, and says so.
func (s *Scenario) Run(ctx context.Context, progress func(policy string, share float64)) (*Result, error) {
	whole, _ := s.scenario()
	res := &Result{Schema: Schema, Scenario: s.text, Capacity: whole.Capacity(), scenario: s}
	if s.instead != (Instead{}) {
		res.Instead = &s.instead
	}
	for _, p := range s.contenders {
		var best sim.Report
		for i, policy := range p.policies() {
			run := p.under(whole)
			run.Policy = policy
			run.Record.Interval = max(run.Duration/points, 1)
			run.Record.Watch = func(at sim.Point) { progress(p.Name, at.At.Seconds()/run.Duration.Seconds()) }
			report, err := sim.RunContext(ctx, run)
			if ctx.Err() != nil {
				res.Partial = true
				return res, nil
			}
			if err != nil {
				return nil, fmt.Errorf("policy %s: %w", p.Name, err)
			}
			if i == 0 || report.Total.Goodput > best.Total.Goodput {
				best = report
			}
		}
		out := outcome(p.Name, &best)
		if s.Trouble != nil {
			out.Answered = s.Trouble.answered(&best, whole.Duration)
		}
		res.Outcomes = append(res.Outcomes, out)
	}
	return res, nil
}

func outcome(policy string, r *sim.Report) Outcome {
	out := Outcome{Policy: policy, Total: tally(&r.Total), Peak: r.Peak, RefusedBy: map[string]uint64{}}
	for i := range r.Classes {
		out.Classes = append(out.Classes, tally(&r.Classes[i]))
	}
	for reason, n := range r.RefusedBy {
		out.RefusedBy[reason.String()] = n
	}
	for _, p := range r.Timeline {
		out.Timeline = append(out.Timeline, Point{(p.At + r.Interval).Seconds(), p.Calls, p.Offered, p.OK, p.Refused, p.Limit, p.InFlight, p.Queued, p.InBackend})
	}
	return out
}

func tally(t *sim.Tally) Tally {
	out := Tally{
		Name: t.Name, Goodput: t.Goodput, Callers: t.Calls(), Offered: t.Offered, OK: t.OK, Late: t.Late, Failed: t.Failed, Refused: t.Refused, Left: t.Left,
	}
	if out.Callers > 0 {
		out.Served = new(t.Served())
	}
	if t.Latency.Count() > 0 {
		ms := func(q float64) *float64 { return new(float64(t.Latency.Quantile(q)) / float64(time.Millisecond)) }
		out.P50, out.P99 = ms(.5), ms(.99)
	}
	return out
}
