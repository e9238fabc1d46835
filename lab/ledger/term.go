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
}

// Extra is a figure that only some experiments have.
func Extra(key, name string) Figure { return Figure{Name: name, Key: key} }

// The figures that every loaded run has.
var (
	Goodput      = Figure{Name: "goodput", Value: func(r *results.Run) float64 { return offered(r, r.Rate("ok")) }}
	RefusedShare = Figure{Name: "share refused", Value: func(r *results.Run) float64 { return offered(r, 100*r.Share("rejected")) }}
	PeakRSS      = Figure{Name: "peak RSS", OfKilled: true, Value: func(r *results.Run) float64 { return positive(float64(r.Process.PeakRSS)) }}
	Goroutines   = Figure{Name: "peak goroutines", OfKilled: true, Value: func(r *results.Run) float64 { return positive(float64(r.Process.PeakGoroutines)) }}
)

// Quantile is a quantile of the latency of one kind of outcome, in milliseconds.
func Quantile(kind string, q float64, name string) Figure {
	return Figure{Name: name, Value: func(r *results.Run) float64 {
		h := r.Of(kind).Latency
		if h.Count() == 0 {
			return math.NaN()
		}
		return float64(h.Quantile(q)) / 1e6
	}}
}

// offered is x, or missing if nothing was offered.
func offered(r *results.Run, x float64) float64 {
	if r.Offered == 0 {
		return math.NaN()
	}
	return x
}

// positive is x, or missing if it is 0: nothing measured it.
func positive(x float64) float64 {
	if x <= 0 {
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
	if blocks := r.Blocks[f.Key]; len(blocks) > 0 {
		return blocks
	}
	if x, ok := r.Extra[f.Key]; ok {
		return []float64{x}
	}
	return []float64{math.NaN()}
}

// Term makes one value a repeat out of the figures of cells. Where the figures have a
// value for each interleaved block, it is taken block by block, and the median of the
// blocks is the repeat's value.
type Term struct {
	op     op
	args   []Term
	key    Key
	figure Figure
	x      float64
}

type op uint8

const (
	constant op = iota
	leaf
	over
	minus
	plus
	times
	largest  // of each repeat
	smallest // of each repeat
	best     // the one whose median over the session is the largest
	least    // the one whose median over the session is the smallest
)

// Of is a figure of a cell.
func Of(k Key, f Figure) Term { return Term{op: leaf, key: k, figure: f} }

// Const is a known number, such as a bound that was configured.
func Const(x float64) Term { return Term{x: x} }

// Over is the ratio t/u.
func (t Term) Over(u Term) Term { return Term{op: over, args: []Term{t, u}} }

// Minus is the difference t−u.
func (t Term) Minus(u Term) Term { return Term{op: minus, args: []Term{t, u}} }

// Plus is the sum.
func (t Term) Plus(u Term) Term { return Term{op: plus, args: []Term{t, u}} }

// Times is the multiple.
func (t Term) Times(x float64) Term { return Term{op: times, args: []Term{t, Const(x)}} }

// Largest is the largest of the terms in each repeat. Smallest is the reverse.
func Largest(terms ...Term) Term  { return Term{op: largest, args: terms} }
func Smallest(terms ...Term) Term { return Term{op: smallest, args: terms} }

// Best is the one of the terms whose median over all repeats is the largest, so that
// the noise of one repeat does not choose. Least is the reverse.
func Best(terms ...Term) Term  { return Term{op: best, args: terms} }
func Least(terms ...Term) Term { return Term{op: least, args: terms} }

// at returns the values of a repeat, one for each block. With twins, the figures of
// cells that have a twin are its.
func (t Term) at(e *Evidence, repeat int, twins bool) []float64 {
	switch t.op {
	case constant:
		return []float64{t.x}
	case leaf:
		k := t.key
		if k.Twin = true; !twins || !e.ran(k, repeat) {
			k = t.key
		}
		return e.values(k, t.figure, repeat)
	case best, least:
		return t.chosen(e).at(e, repeat, twins)
	}
	xs := t.args[0].at(e, repeat, twins)
	for _, u := range t.args[1:] {
		xs = blockwise(xs, u.at(e, repeat, twins), t.op)
	}
	return xs
}

// chosen is the argument of best or least that stands for all.
func (t Term) chosen(e *Evidence) Term {
	var out Term
	var top float64
	for i, u := range t.args {
		m := Median(e.perRepeat(u, false))
		if math.IsNaN(m) {
			return u // whose missing figure will be named
		}
		if t.op == least {
			m = -m
		}
		if i == 0 || m > top {
			out, top = u, m
		}
	}
	return out
}

func blockwise(a, b []float64, o op) []float64 {
	if len(a) != len(b) && len(a) > 1 && len(b) > 1 { // other rounds: only the medians belong together
		a, b = []float64{Median(a)}, []float64{Median(b)}
	}
	out := make([]float64, max(len(a), len(b)))
	for i := range out {
		out[i] = o.of(a[min(i, len(a)-1)], b[min(i, len(b)-1)])
	}
	return out
}

func (o op) of(a, b float64) float64 {
	switch o {
	case over:
		return a / b
	case minus:
		return a - b
	case plus:
		return a + b
	case times:
		return a * b
	case largest:
		return max(a, b)
	}
	return min(a, b)
}

// leaves are the figures that the term is made of.
func (t Term) leaves(e *Evidence) []Term {
	switch t.op {
	case constant:
		return nil
	case leaf:
		return []Term{t}
	case best, least:
		if e != nil {
			return t.chosen(e).leaves(e)
		}
	}
	var out []Term
	for _, u := range t.args {
		for _, l := range u.leaves(e) {
			if !slices.ContainsFunc(out, func(o Term) bool { return o.key == l.key && o.figure.Name == l.figure.Name }) {
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
