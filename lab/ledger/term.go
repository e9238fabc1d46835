package ledger

import (
	"math"
	"slices"

	"github.com/spillway-go/spillway/lab/results"
)

// Figure is one number of a run.
type Figure struct {
	Name  string                     // as in a sentence: "goodput"
	Key   string                     // of results.Run.Blocks, or else of Extra; empty: Value says
	Value func(*results.Run) float64 // NaN if the run does not have it

	// OfKilled says that a run that was killed has this figure too: what was counted
	// until then.
	OfKilled bool

	// Undisturbed says that other load only makes the figure larger, for a time: of its
	// interleaved blocks the lower quartile counts, not each with those of the same round.
	Undisturbed bool
}

// Extra is a figure that only some experiments have.
func Extra(key, name string) Figure { return Figure{Name: name, Key: key} }

// The figures that every loaded run has.
var (
	Goodput      = Figure{Name: "goodput", Value: func(r *results.Run) float64 { return Unless(r.Offered == 0 || r.Elapsed <= 0, r.Rate("ok")) }}
	RefusedShare = Figure{Name: "share refused", Value: func(r *results.Run) float64 { return Unless(r.Offered == 0, 100*r.Share("rejected")) }}
	PeakRSS      = Figure{Name: "peak RSS", OfKilled: true, Value: func(r *results.Run) float64 {
		return Unless(r.Process.PeakRSS == 0, float64(r.Process.PeakRSS))
	}}
	Goroutines = Figure{Name: "peak goroutines", OfKilled: true, Value: func(r *results.Run) float64 {
		return Unless(r.Process.PeakGoroutines <= 0, float64(r.Process.PeakGoroutines))
	}}
)

// Quantile is a quantile of the latency of one kind of outcome, in milliseconds.
func Quantile(kind string, q float64, name string) Figure {
	return Figure{Name: name, Value: func(r *results.Run) float64 {
		h := r.Of(kind).Latency
		return Unless(h.Count() == 0, float64(h.Quantile(q))/1e6)
	}}
}

// Unless is x, or NaN if it is missing.
func Unless(missing bool, x float64) float64 {
	if missing {
		return math.NaN()
	}
	return x
}

// Keep stores a figure that was measured in interleaved blocks in a run: every block for
// the claims, and their median for the tables.
func Keep(r *results.Run, key string, blocks []float64) {
	if r.Blocks == nil {
		r.Blocks = map[string][]float64{}
	}
	r.Blocks[key] = blocks
	if m := Median(blocks); !math.IsNaN(m) {
		if r.Extra == nil {
			r.Extra = map[string]float64{}
		}
		r.Extra[key] = m
	}
}

// of returns the figure's values in a run: one, or one for each interleaved block.
func (f Figure) of(r *results.Run) []float64 {
	if f.Value != nil {
		return []float64{f.Value(r)}
	}
	switch blocks := r.Blocks[f.Key]; {
	case len(blocks) > 0 && f.Undisturbed:
		return []float64{lowerQuartile(blocks)}
	case len(blocks) > 0:
		return blocks
	}
	x, ok := r.Extra[f.Key]
	return []float64{Unless(!ok, x)}
}

// Term makes one value a repeat out of the figures of cells. Where the figures have a
// value for each interleaved block, it is taken block by block, and the median of the
// blocks is the repeat's value.
type Term struct {
	*reading                            // nil: made of args, or x
	args     []Term                     // to join or choose from
	join     func(a, b float64) float64 // the values of two args
	choose   float64                    // by the median over the session: 1 the largest, -1 the smallest
	x        float64
}

// reading is a figure of a cell.
type reading struct {
	key    Key
	figure Figure
}

// Of is a figure of a cell.
func Of(k Key, f Figure) Term { return Term{reading: &reading{k, f}} }

// Const is a known number, such as a bound that was configured.
func Const(x float64) Term { return Term{x: x} }

func joined(join func(a, b float64) float64, terms ...Term) Term {
	return Term{join: join, args: terms}
}

// Over is the ratio t/u.
func (t Term) Over(u Term) Term { return joined(func(a, b float64) float64 { return a / b }, t, u) }

// Minus is the difference t−u.
func (t Term) Minus(u Term) Term { return joined(func(a, b float64) float64 { return a - b }, t, u) }

// Plus is the sum.
func (t Term) Plus(u Term) Term { return joined(func(a, b float64) float64 { return a + b }, t, u) }

// Times is the multiple.
func (t Term) Times(x float64) Term {
	return joined(func(a, b float64) float64 { return a * b }, t, Const(x))
}

// Largest is the largest of the terms in each repeat. Smallest is the reverse.
func Largest(terms ...Term) Term  { return joined(math.Max, terms...) }
func Smallest(terms ...Term) Term { return joined(math.Min, terms...) }

// Best is the one of the terms that is the largest, so that the noise of one repeat does not choose:
// for every second repeat, the one whose median over the other repeats is the largest, and the other
// way round. The largest of many noisy figures is also the luckiest one. Where it is judged by repeats
// that did not choose it, luck counts for nothing. Least is the reverse.
func Best(terms ...Term) Term  { return Term{args: terms, choose: 1} }
func Least(terms ...Term) Term { return Term{args: terms, choose: -1} }

// With is the term with what f returns in place of each figure.
func (t Term) With(f func(Key, Figure) Figure) Term {
	if t.reading != nil {
		return Of(t.key, f(t.key, t.figure))
	}
	t.args = slices.Clone(t.args)
	for i, u := range t.args {
		t.args[i] = u.With(f)
	}
	return t
}

// at returns the values of a repeat, one for each block. With twins, the figures of
// cells that have a twin are its.
func (t Term) at(e *Evidence, repeat int, twins bool) []float64 {
	switch {
	case t.reading != nil:
		k := t.key
		if twins && e.ran(k.twin(), repeat) {
			k = k.twin()
		}
		return e.values(k, t.figure, repeat)
	case t.choose != 0:
		return t.chosenIn(e, repeat).at(e, repeat, twins)
	case t.join == nil:
		return []float64{t.x}
	}
	xs := t.args[0].at(e, repeat, twins)
	for _, u := range t.args[1:] {
		xs = t.blockwise(xs, u.at(e, repeat, twins))
	}
	return xs
}

// chosen is the argument that stands for all; of none, one that is missing. An argument that is
// missing in some repeats is left out if none of its figures reaches the median of the best of the
// others. Otherwise that argument is chosen, so that the missing figure is named.
func (t Term) chosen(e *Evidence) Term {
	out, top := Const(math.NaN()), math.NaN()
	for _, u := range t.args {
		if m := Median(e.perRepeat(u)); math.IsNaN(top) && !math.IsNaN(m) || t.choose*m > t.choose*top {
			out, top = u, m
		}
	}
	for _, u := range t.args {
		values := e.perRepeat(u)
		known := slices.DeleteFunc(slices.Clone(values), math.IsNaN)
		reaches := func(x float64) bool { return t.choose*x >= t.choose*top }
		missing := len(known) == 0 || len(known) < len(values)
		if missing && (len(known) == 0 || math.IsNaN(top) || slices.ContainsFunc(known, reaches)) {
			return u
		}
	}
	return out
}

// chosenIn is the argument that stands for all in a repeat, chosen by every second of the others.
func (t Term) chosenIn(e *Evidence, repeat int) Term {
	out, top := t.chosen(e), math.NaN()
	if slices.ContainsFunc(e.perRepeat(out), math.IsNaN) {
		return out // the figure that is missing is named
	}
	for _, u := range t.args {
		if math.IsNaN(Median(u.at(e, repeat, false))) {
			continue
		}
		var others []float64
		for _, n := range e.complete(u) {
			if n%2 != repeat%2 {
				others = append(others, Median(u.at(e, n, false)))
			}
		}
		if m := Median(others); math.IsNaN(top) && !math.IsNaN(m) || t.choose*m > t.choose*top {
			out, top = u, m
		}
	}
	return out
}

func (t Term) blockwise(a, b []float64) []float64 {
	if len(a) != len(b) && len(a) > 1 && len(b) > 1 { // other rounds: only the medians belong together
		a, b = []float64{Median(a)}, []float64{Median(b)}
	}
	out := make([]float64, max(len(a), len(b)))
	for i := range out {
		out[i] = t.join(a[min(i, len(a)-1)], b[min(i, len(b)-1)])
	}
	return out
}

// Keys are the cells of which the term is made.
func (t Term) Keys() (out []Key) {
	for _, l := range t.readings(nil) {
		if !slices.Contains(out, l.key) {
			out = append(out, l.key)
		}
	}
	return out
}

// readings are the figures that the term is made of; with evidence only those of the
// arguments that were chosen.
func (t Term) readings(e *Evidence) (out []reading) {
	switch {
	case t.reading != nil:
		return []reading{*t.reading}
	case t.choose != 0 && e != nil:
		return t.chosen(e).readings(e)
	}
	for _, u := range t.args {
		for _, l := range u.readings(e) {
			if !slices.ContainsFunc(out, func(o reading) bool { return o.key == l.key && o.figure.Name == l.figure.Name }) {
				out = append(out, l)
			}
		}
	}
	return out
}

// Median returns the middle of the values, the mean of the two middle ones of an even
// number, and NaN of none or with a NaN among them.
func Median(xs []float64) float64 {
	if len(xs) == 0 || slices.ContainsFunc(xs, math.IsNaN) {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(xs))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// lowerQuartile is the value under which a quarter of the values lie; NaN with a NaN among
// them.
func lowerQuartile(xs []float64) float64 {
	if slices.ContainsFunc(xs, math.IsNaN) {
		return math.NaN()
	}
	return slices.Sorted(slices.Values(xs))[(len(xs)-1)/4]
}
