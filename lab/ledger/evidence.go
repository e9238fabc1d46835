package ledger

import (
	"fmt"
	"maps"
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

func (k Key) twin() Key { k.Twin = true; return k }

// Evidence is the runs of a session, queried cell by cell.
type Evidence struct {
	Seed  uint64
	Looks int // how often the session was judged before it was extended

	keys    []Key // in the order in which they were first run
	runs    map[Key]map[int]*results.Run
	repeats int
}

// NewEvidence sorts the runs, of which there is one for each cell and repeat: see
// [results.Latest].
func NewEvidence(runs []results.Run, seed uint64) *Evidence {
	e := &Evidence{Seed: seed, runs: map[Key]map[int]*results.Run{}}
	runs = results.Latest(runs)
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
	return slices.DeleteFunc(slices.Clone(e.keys), func(k Key) bool { return k.Twin || !ok(k) })
}

// Has reports whether the cell was run at all.
func (e *Evidence) Has(k Key) bool { return e.runs[k] != nil }

// Runs returns the measured runs of a cell, killed ones too, in the order of the repeats.
func (e *Evidence) Runs(k Key) []*results.Run {
	return slices.DeleteFunc(e.all(k), func(r *results.Run) bool { return r.Failed != "" })
}

// all returns the runs of a cell in the order of the repeats, failed ones too.
func (e *Evidence) all(k Key) (out []*results.Run) {
	for _, repeat := range slices.Sorted(maps.Keys(e.runs[k])) {
		out = append(out, e.runs[k][repeat])
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
	for _, r := range e.all(k) {
		switch x := r.Params[name].(type) {
		case float64: // as read from disk
			return x
		case int:
			return float64(x)
		}
	}
	return math.NaN()
}

// ranAny reports whether any cell of the term was run.
func (e *Evidence) ranAny(t Term) bool {
	return slices.ContainsFunc(t.readings(nil), func(l reading) bool { return e.Has(l.key) })
}

// ran reports whether a cell was run in a repeat, even if in vain.
func (e *Evidence) ran(k Key, repeat int) bool { return e.runs[k][repeat] != nil }

// values are those of a figure in a repeat. A run that failed has none; one that was
// killed has what was counted until then.
func (e *Evidence) values(k Key, f Figure, repeat int) []float64 {
	if r := e.runs[k][repeat]; r != nil && r.Failed == "" && (r.Killed == "" || f.OfKilled) {
		return f.of(r)
	}
	return []float64{math.NaN()}
}

// perRepeat is the term's value in each complete repeat.
func (e *Evidence) perRepeat(t Term) (out []float64) {
	for _, repeat := range e.complete(t) {
		out = append(out, Median(t.at(e, repeat, false)))
	}
	return out
}

// complete returns the repeats in which all cells of the term were run. One that an
// interruption cut short does not count; one in which a run failed or lacks a figure does.
func (e *Evidence) complete(t Term) (out []int) {
	readings := t.readings(nil)
	for repeat := range e.repeats {
		if !slices.ContainsFunc(readings, func(l reading) bool { return !e.ran(l.key, repeat) }) {
			out = append(out, repeat)
		}
	}
	return out
}

// disturbed returns those of the complete repeats, by their place among them, in which
// other processes disturbed a cell of the term.
func (e *Evidence) disturbed(t Term) (out []int) {
	for i, repeat := range e.complete(t) {
		if slices.ContainsFunc(t.readings(e), func(l reading) bool { return e.runs[l.key][repeat].Disturbed > 0 }) {
			out = append(out, i)
		}
	}
	return out
}

// missing says which figure of the term is missing, as a sentence; "" if none is.
func (e *Evidence) missing(t Term) string {
	repeats := e.complete(t)
	for _, l := range t.readings(e) {
		if len(e.Runs(l.key)) == 0 {
			return e.never(l.key)
		}
		for _, repeat := range repeats {
			if finite(Median(e.values(l.key, l.figure, repeat))) {
				continue
			}
			r := e.runs[l.key][repeat]
			if r.Failed != "" {
				return fmt.Sprintf("The %s of %s is missing in repeat %d, which failed: %s.", l.figure.Name, l.key, repeat+1, strings.TrimSuffix(results.Gist(r.Failed), "."))
			}
			if r.Killed != "" && !l.figure.OfKilled {
				return fmt.Sprintf("The %s of %s is missing: it was %s.", l.figure.Name, l.key, strings.TrimSuffix(r.Killed, "."))
			}
			return fmt.Sprintf("The %s of %s is missing in repeat %d.", l.figure.Name, l.key, repeat+1)
		}
	}
	return ""
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// never says why a cell was measured in no repeat.
func (e *Evidence) never(k Key) string {
	why := fmt.Sprintf("%s was not run. It takes a session that runs it.", k)
	for _, r := range e.all(k) {
		why = fmt.Sprintf("%s could not be measured: %s.", k, strings.TrimSuffix(results.Gist(r.Failed), "."))
	}
	return why
}
