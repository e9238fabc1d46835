package loadgen

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spillway-go/spillway/histogram"
)

// resultSchema is the version of the JSON form in wireResult.
const resultSchema = "spillway/loadgen-result/v1"

var errNoResult = errors.New("loadgen: no load can have this result")

// wireResult is the JSON form of a Result. The counts of outcomes are the counts of their
// histograms; times are nanoseconds.
type wireResult struct {
	Schema         string              `json:"schema"`
	Aborted        uint64              `json:"aborted,omitempty"`
	Waited         uint64              `json:"waited,omitempty"`
	Elapsed        time.Duration       `json:"elapsed_ns"`
	Latency        wireLatency         `json:"latency_ns"`
	Lag            histogram.Histogram `json:"lag_ns"`
	GeneratorBound bool                `json:"generator_bound,omitempty"`
	Why            string              `json:"why,omitempty"`
	Causes         []wireCause         `json:"causes,omitempty"`
	Phases         []wirePhase         `json:"phases,omitempty"`
	Classes        []wireClass         `json:"classes,omitempty"`
	Interval       time.Duration       `json:"interval_ns,omitempty"` // between the steps of Series
	Series         [][]uint64          `json:"series,omitempty"`      // for each step: requests sent, and each outcome
	Partial        bool                `json:"partial,omitempty"`
}

type wireCause struct {
	Outcome string `json:"outcome"`
	Status  int    `json:"status,omitempty"`
	Text    string `json:"text,omitempty"`
	Local   bool   `json:"local,omitempty"`
	Count   uint64 `json:"count"`
}

type wirePhase struct {
	Name string              `json:"name"`
	Took histogram.Histogram `json:"took_ns"`
}

type wireClass struct {
	Name    string      `json:"name"`
	Latency wireLatency `json:"latency_ns"`
}

// wireLatency has a histogram for each outcome, by name.
type wireLatency map[string]*histogram.Histogram

func latencyOf(parts *[outcomes]OutcomeResult) wireLatency {
	w := wireLatency{}
	for o := range parts {
		w[Outcome(o).String()] = &parts[o].Latency
	}
	return w
}

// into fills in parts and returns the number of requests in them.
func (w wireLatency) into(parts *[outcomes]OutcomeResult) (requests uint64, err error) {
	if len(w) != len(parts) {
		return 0, errNoResult
	}
	for o := range parts {
		h := w[Outcome(o).String()]
		if h == nil || requests+h.Count() < requests {
			return 0, errNoResult
		}
		parts[o] = OutcomeResult{h.Count(), *h}
		requests += h.Count()
	}
	return requests, nil
}

// MarshalJSON writes all contents of r; UnmarshalJSON restores them.
func (r Result) MarshalJSON() ([]byte, error) {
	w := wireResult{
		Schema: resultSchema, Aborted: r.Aborted, Waited: r.Waited, Elapsed: r.Elapsed, Latency: latencyOf(&r.Outcomes), Lag: r.Lag,
		GeneratorBound: r.GeneratorBound, Why: r.Why, Interval: r.interval(), Partial: r.Partial,
	}
	for _, c := range r.Causes {
		w.Causes = append(w.Causes, wireCause{c.Outcome.String(), c.Status, c.Text, c.Local, c.Count})
	}
	for _, p := range r.Phases {
		w.Phases = append(w.Phases, wirePhase(p))
	}
	for i := range r.Classes {
		w.Classes = append(w.Classes, wireClass{r.Classes[i].Name, latencyOf(&r.Classes[i].Outcomes)})
	}
	for _, p := range r.Series {
		w.Series = append(w.Series, append([]uint64{p.Sent}, p.Outcomes[:]...))
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads the output of MarshalJSON. Another version of the form, and figures that
// contradict each other, are an error and leave r unchanged.
func (r *Result) UnmarshalJSON(data []byte) error {
	var w wireResult
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	if w.Schema != resultSchema {
		return fmt.Errorf("loadgen: a result of the form %.60q: this version reads %s", w.Schema, resultSchema)
	}
	read := Result{
		Aborted: w.Aborted, Waited: w.Waited, Elapsed: w.Elapsed, Lag: w.Lag,
		GeneratorBound: w.GeneratorBound, Why: w.Why, Partial: w.Partial,
	}
	answered, err := w.Latency.into(&read.Outcomes)
	if err != nil {
		return err
	}
	read.Offered = answered + w.Aborted
	if read.Offered < answered || w.Waited > read.Offered || w.Lag.Count() != read.Offered || w.Elapsed < 0 {
		return errNoResult
	}
	if err := read.readCauses(w.Causes); err != nil {
		return err
	}
	for _, p := range w.Phases {
		phase := read.phase(p.Name)
		if !slices.Contains(phaseNames[:], p.Name) || phase.Count() > 0 || p.Took.Count() == 0 || p.Took.Count() > read.Offered {
			return errNoResult
		}
		*phase = p.Took
	}
	if err := read.readClasses(w.Classes, answered); err != nil {
		return err
	}
	if err := read.readSeries(w.Series, w.Interval); err != nil {
		return err
	}
	*r = read
	return nil
}

func (r *Result) readCauses(causes []wireCause) error {
	if len(causes) > mostCauses+int(outcomes) {
		return errNoResult
	}
	var left [outcomes]uint64
	for o := range left {
		left[o] = r.Outcomes[o].Count
	}
	for _, c := range causes {
		o := slices.Index(outcomeNames[:], c.Outcome)
		if o < 0 || c.Count > left[o] || c.Status < 0 || c.Status > 999 || len(c.Text) > 2*mostText {
			return errNoResult
		}
		left[o] -= c.Count
		r.Causes = append(r.Causes, Cause{Outcome(o), c.Status, c.Text, c.Local, c.Count})
	}
	return nil
}

func (r *Result) readClasses(classes []wireClass, answered uint64) error {
	var sum uint64
	for _, c := range classes {
		class := ClassResult{Name: c.Name}
		n, err := c.Latency.into(&class.Outcomes)
		if sum += n; err != nil || sum < n {
			return errNoResult
		}
		r.Classes = append(r.Classes, class)
	}
	if len(classes) > 0 && sum != answered {
		return errNoResult
	}
	return nil
}

func (r *Result) readSeries(series [][]uint64, interval time.Duration) error {
	if len(series) > 1 && (interval <= 0 || interval > maxProfile || time.Duration(len(series)) > 10*maxProfile/interval) || len(series) < 2 && interval != 0 {
		return errNoResult
	}
	for i, counts := range series {
		p := Point{At: time.Duration(i) * interval}
		if len(counts) != 1+len(p.Outcomes) {
			return errNoResult
		}
		p.Sent = counts[0]
		copy(p.Outcomes[:], counts[1:])
		r.Series = append(r.Series, p)
	}
	return nil
}
