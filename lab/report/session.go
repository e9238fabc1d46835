package report

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

// session is everything that is shown. The template of the page and the terminal ask it
// for the same words and tables.
type session struct {
	Family   ledger.Family
	Results  results.Results
	Setups   []*setup // in reading order
	served   []*setup // those for which the family has no figures of its own
	runs     []results.Run
	cells    []*cell  // of all set-ups
	patterns []string // every contestant, in the order that fixes its colour
	detail   detail
	brief    bool // it shares its page with other experiments
}

// setup is the loads of one set-up.
type setup struct {
	Name  string // in words
	loads []*load
	cells []*cell // of all loads
}

// load is the contestants under one load.
type load struct {
	name  string
	cells []*cell
}

// cell is the runs of one contestant under one load in one set-up. Twins of A/A pairs
// are not in it: they measure noise.
type cell struct {
	ledger.Key
	multiple float64        // the load as a multiple of the capacity; NaN if it is not one
	runs     []*results.Run // measured or killed, by repeat
	killed   []string       // why
}

// stat is a figure over the repeats that have it.
type stat []float64

func (s stat) median() float64 { return ledger.Median(s) }

// figure is one number of a run; NaN: the run does not have it.
type figure func(*results.Run) float64

func (c *cell) stat(of figure) (s stat) {
	for _, r := range c.runs {
		if v := of(r); !math.IsNaN(v) {
			s = append(s, v)
		}
	}
	return s
}

func extra(key string) figure {
	return func(r *results.Run) float64 {
		if v, ok := r.Extra[key]; ok {
			return v
		}
		return math.NaN()
	}
}

// per is a figure over another one; missing if that is not above 0.
func (f figure) per(g figure) figure {
	return func(r *results.Run) float64 {
		if of := g(r); of > 0 {
			return f(r) / of
		}
		return math.NaN()
	}
}

func offered(r *results.Run) float64 { return float64(r.Offered) }

// rate is the answers of a kind a second.
func rate(kind string) figure { return func(r *results.Run) float64 { return r.Rate(kind) } }

// quantile is that of the latency of the requests with one of the outcomes.
func quantile(q float64, kinds ...string) figure {
	return latency(func(h *histogram.Histogram) float64 { return float64(h.Quantile(q)) }, kinds...)
}

// latency is a figure of that latency.
func latency(of func(*histogram.Histogram) float64, kinds ...string) figure {
	return func(r *results.Run) float64 {
		if h := took([]*results.Run{r}, kinds...); h.Count() > 0 {
			return of(h)
		}
		return math.NaN()
	}
}

// took is the latency of the runs' requests with one of the outcomes.
func took(runs []*results.Run, kinds ...string) *histogram.Histogram {
	all := &histogram.Histogram{}
	for _, r := range runs {
		for _, kind := range kinds {
			if h := r.Of(kind).Latency; h != nil {
				all.Merge(h)
			}
		}
	}
	return all
}

// series is the time line of the first repeat, as long as it was loaded.
func (c *cell) series() []results.Point {
	if len(c.runs) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(c.runs[0].Series), func(p results.Point) bool { return p.At >= c.runs[0].Elapsed })
}

// sweep are the multiples of the capacity that a set-up was loaded with, if there are
// several.
func (g *setup) sweep() (multiples []float64) {
	for _, l := range g.loads {
		if x := l.cells[0].multiple; x > 0 {
			multiples = append(multiples, x)
		}
	}
	if len(multiples) < 2 {
		return nil
	}
	return multiples
}

// main is the load that is shown where there is room for one: the high one, or the last.
func (g *setup) main() *load {
	for _, l := range g.loads {
		if l.name == "high" {
			return l
		}
	}
	return g.loads[len(g.loads)-1]
}

// asked reports whether anything of the set-up was sent requests.
func (g *setup) asked() bool { return slices.ContainsFunc(g.cells, (*cell).asked) }

// asked reports whether the contestant was sent requests.
func (c *cell) asked() bool {
	return slices.ContainsFunc(c.runs, func(r *results.Run) bool { return r.Offered > 0 })
}

// sent reports whether the contestant had requests to answer, or none was
// counted because it failed or was killed.
func (c *cell) sent() bool { return len(c.runs) == 0 || len(c.killed) > 0 || c.asked() }

// idle reports whether nothing was sent, as in a run that only holds
// goroutines: it has no rates and no latency.
func (l *load) idle() bool { return !slices.ContainsFunc(l.cells, (*cell).sent) }

// untimed reports whether there were answers but their latency was not measured: units
// of work that are too short for a clock.
func (l *load) untimed() bool {
	answers := func(c *cell) bool { return c.stat(rate("ok")).median()+c.stat(rate("rejected")).median() > 0 }
	timed := func(c *cell) bool { return took(c.runs, "ok", "rejected").Count() > 0 }
	return l.idle() || slices.ContainsFunc(l.cells, answers) && !slices.ContainsFunc(l.cells, timed)
}

// cell returns the contestant's cell, or an empty one.
func (l *load) cell(pattern string) *cell {
	for _, c := range l.cells {
		if c.Pattern == pattern {
			return c
		}
	}
	return &cell{}
}

// newSession sorts the runs into cells.
func newSession(fam ledger.Family, res results.Results, runs []results.Run) *session {
	s := &session{Family: fam, Results: res, runs: runs}
	s.Results.Schema = cmp.Or(res.Schema, results.Schema)
	e := ledger.NewEvidence(runs, res.Seed)
	for _, k := range e.Keys(func(ledger.Key) bool { return true }) {
		c := &cell{Key: k, multiple: e.ParamOf(k, "load"), runs: e.Runs(k)}
		for _, r := range c.runs {
			if r.Killed != "" {
				c.killed = append(c.killed, r.Killed)
			}
		}
		s.cells = append(s.cells, c)
		if !slices.Contains(s.patterns, k.Pattern) {
			s.patterns = append(s.patterns, k.Pattern)
		}
	}
	slices.SortFunc(s.patterns, byRank(knownPatterns))
	slices.SortFunc(s.cells, func(a, b *cell) int {
		return cmp.Or(byRank(knownSetups)(a.Setup, b.Setup), cmp.Compare(a.multiple, b.multiple), byRank(knownLoads)(a.Load, b.Load), byRank(knownPatterns)(a.Pattern, b.Pattern))
	})
	for i, c := range s.cells {
		if i == 0 || c.Setup != s.cells[i-1].Setup {
			s.Setups = append(s.Setups, &setup{Name: setupName(c.Setup)})
		}
		g := s.Setups[len(s.Setups)-1]
		if n := len(g.loads); n == 0 || g.loads[n-1].name != c.Load {
			g.loads = append(g.loads, &load{name: c.Load})
		}
		l := g.loads[len(g.loads)-1]
		l.cells, g.cells = append(l.cells, c), append(g.cells, c)
	}
	s.detail = everything
	s.served = slices.DeleteFunc(slices.Clone(s.Setups), func(g *setup) bool { return s.axis(g) != "" || !g.asked() && len(s.ownTables(g)) > 0 })
	return s
}

// shape is the number that fixes a contestant's colour and marker.
func (s *session) shape(pattern string) int { return max(slices.Index(s.patterns, pattern), 0) }

// Known names come first, in the order of the ledger; the others follow by name.
var (
	knownSetups   = []string{"published shape", "published", "in process", "real", "for real"}
	knownLoads    = []string{"low", "high", "sustained"}
	knownPatterns = []string{"spillway", "naive", "workerpool", "optimized", "limiter"}
)

func byRank(known []string) func(a, b string) int {
	rank := func(s string) int { return slices.Index(append(known[:len(known):len(known)], s), s) }
	return func(a, b string) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), natural(a, b)) }
}

// natural compares names so that numbers in them count as numbers: 1→100 comes
// after 1→2.
func natural(a, b string) int { return cmp.Or(cmp.Compare(padded(a), padded(b)), cmp.Compare(a, b)) }

var digits = regexp.MustCompile(`\d+`)

func padded(name string) string {
	return digits.ReplaceAllStringFunc(name, func(n string) string { return strings.Repeat("0", max(20-len(n), 0)) + n })
}
