package ledger

import (
	"fmt"
	"math"
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

// Param returns a parameter that the runs of the first cell that has it agree on, as a
// number; NaN if none has it.
func (e *Evidence) Param(name string) float64 {
	for _, k := range e.keys {
		for _, r := range e.runs[k] {
			switch x := r.Params[name].(type) {
			case float64: // as read from disk
				return x
			case int:
				return float64(x)
			}
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

// perRepeat is the term's value in each repeat in which all its cells were measured.
// A repeat that an interruption cut short does not count; a figure that is missing in
// a run does, as NaN.
func (e *Evidence) perRepeat(t Term, twins bool) []float64 {
	var out []float64
	for repeat := range e.repeats {
		if e.complete(t, repeat) {
			out = append(out, Median(t.at(e, repeat, twins)))
		}
	}
	return out
}

func (e *Evidence) complete(t Term, repeat int) bool {
	for _, l := range t.leaves(nil) {
		if !e.ran(l.key, repeat) {
			return false
		}
	}
	return true
}

// missing says which figure of the term is missing, as a sentence; "" if none is.
func (e *Evidence) missing(t Term) string {
	counted := 0
	for repeat := range e.repeats {
		if e.complete(t, repeat) {
			counted++
		}
	}
	for _, l := range t.leaves(nil) {
		if counted == 0 {
			if why := e.never(l.key); why != "" {
				return why
			}
		}
		for repeat := range e.repeats {
			if e.complete(t, repeat) && unusable(e.values(l.key, l.figure, repeat)) {
				r := e.runs[l.key][repeat]
				if r != nil && r.Killed != "" && !l.figure.OfKilled {
					return fmt.Sprintf("The %s of %s is missing: it was %s.", l.figure.Name, l.key, strings.TrimSuffix(r.Killed, "."))
				}
				return fmt.Sprintf("The %s of %s is missing in repeat %d.", l.figure.Name, l.key, repeat+1)
			}
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
