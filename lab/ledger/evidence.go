package ledger

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/lab/results"
)

// Key names a cell: one contestant under one load in one set-up.
type Key struct {
	Setup, Load, Pattern string
	Twin                 bool // the second of an A/A pair
}

// KeyOf is the cell of a run.
func KeyOf(r *results.Run) Key { return Key{r.Setup, r.Load, r.Pattern, r.Twin} }

func (k Key) String() string {
	s := fmt.Sprintf("%s · %s · %s", k.Setup, k.Load, k.Pattern)
	if k.Twin {
		s += " (twin)"
	}
	return s
}

// Evidence is the runs of a session, queried cell by cell.
type Evidence struct {
	Seed  uint64
	Looks int // how often the session was judged before it was extended

	keys    []Key // in the order in which they were first run
	runs    map[Key]map[int]*results.Run
	repeats int
	plant   func(Key, Figure, int) []float64 // in tests, instead of the runs' figures
}

// NewEvidence sorts the runs. A later run of the same cell and repeat replaces an
// earlier one: it was made again because the machine was disturbed.
func NewEvidence(runs []results.Run, seed uint64) *Evidence {
	e := &Evidence{Seed: seed, runs: map[Key]map[int]*results.Run{}}
	for i := range runs {
		r := &runs[i]
		k := KeyOf(r)
		if e.runs[k] == nil {
			e.runs[k] = map[int]*results.Run{}
			e.keys = append(e.keys, k)
		}
		e.runs[k][r.Repeat] = r
		e.repeats = max(e.repeats, r.Repeat+1)
	}
	return e
}

// Keys returns the cells for which ok is true, without twins, in the order in which
// they were first run.
func (e *Evidence) Keys(ok func(Key) bool) []Key {
	var out []Key
	for _, k := range e.keys {
		if !k.Twin && ok(k) {
			out = append(out, k)
		}
	}
	return out
}

// Has reports whether the cell was run at all.
func (e *Evidence) Has(k Key) bool { return e.runs[k] != nil }

// Runs returns the measured runs of a cell, killed ones too, in the order of the repeats.
func (e *Evidence) Runs(k Key) []*results.Run {
	var out []*results.Run
	for repeat := range e.repeats {
		if e.ran(k, repeat) {
			out = append(out, e.runs[k][repeat])
		}
	}
	return out
}

// Param returns a parameter of the first cell that has it, as a number; NaN if none has.
func (e *Evidence) Param(name string) float64 {
	for _, k := range e.keys {
		if x := e.ParamOf(k, name); !math.IsNaN(x) {
			return x
		}
	}
	return math.NaN()
}

// ParamOf returns a parameter of a cell's runs as a number; NaN if it has none.
func (e *Evidence) ParamOf(k Key, name string) float64 {
	for _, r := range e.runs[k] {
		switch x := r.Params[name].(type) {
		case float64: // as read from disk
			return x
		case int:
			return float64(x)
		}
	}
	return math.NaN()
}

// ran reports whether there is something to read of a cell in a repeat. A run that
// failed is no measurement; one that was killed is.
func (e *Evidence) ran(k Key, repeat int) bool {
	r := e.runs[k][repeat]
	return r != nil && r.Failed == ""
}

func (e *Evidence) values(k Key, f Figure, repeat int) []float64 {
	if e.plant != nil {
		return e.plant(k, f, repeat)
	}
	r := e.runs[k][repeat]
	if r == nil || r.Failed != "" || (r.Killed != "" && !f.OfKilled) {
		return []float64{math.NaN()}
	}
	return f.of(r)
}

// perRepeat is the term's value in each complete repeat.
func (e *Evidence) perRepeat(t Term, twins bool) []float64 {
	var out []float64
	for _, repeat := range e.complete(t) {
		out = append(out, Median(t.at(e, repeat, twins)))
	}
	return out
}

// complete returns the repeats in which all cells of the term were measured. One that an
// interruption cut short does not count; one in which a run lacks a figure does.
func (e *Evidence) complete(t Term) (out []int) {
	leaves := t.leaves(nil)
	for repeat := range e.repeats {
		if !slices.ContainsFunc(leaves, func(l Term) bool { return !e.ran(l.key, repeat) }) {
			out = append(out, repeat)
		}
	}
	return out
}

// disturbed returns those of the complete repeats, by their place among them, in which
// other processes disturbed a cell of the term.
func (e *Evidence) disturbed(t Term) (out []int) {
	for i, repeat := range e.complete(t) {
		if slices.ContainsFunc(t.leaves(e), func(l Term) bool { return e.runs[l.key][repeat].Disturbed > 0 }) {
			out = append(out, i)
		}
	}
	return out
}

// missing says which figure of the term is missing, as a sentence; "" if none is.
func (e *Evidence) missing(t Term) string {
	repeats := e.complete(t)
	for _, l := range t.leaves(nil) {
		if len(repeats) == 0 {
			if why := e.never(l.key); why != "" {
				return why
			}
		}
		for _, repeat := range repeats {
			if !unusable(e.values(l.key, l.figure, repeat)) {
				continue
			}
			if r := e.runs[l.key][repeat]; r.Killed != "" && !l.figure.OfKilled {
				return fmt.Sprintf("The %s of %s is missing: it was %s.", l.figure.Name, l.key, strings.TrimSuffix(r.Killed, "."))
			}
			return fmt.Sprintf("The %s of %s is missing in repeat %d.", l.figure.Name, l.key, repeat+1)
		}
	}
	return ""
}

func unusable(xs []float64) bool {
	m := Median(xs)
	return math.IsNaN(m) || math.IsInf(m, 0)
}

// never says why a cell was measured in no repeat; "" if it was.
func (e *Evidence) never(k Key) string {
	why := fmt.Sprintf("%s was not run.", k)
	for _, r := range e.runs[k] {
		if r.Failed == "" {
			return ""
		}
		why = fmt.Sprintf("%s could not be measured: %s.", k, strings.TrimSuffix(results.Gist(r.Failed), "."))
	}
	return why
}
