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
	runs     []results.Run
	setups   []*setup // in reading order
	cells    []*cell  // of all set-ups
	patterns []string // every contestant, in the order that fixes its colour
}

// setup is the loads of one set-up.
type setup struct {
	name  string
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
	setup, load, pattern string
	runs                 []*results.Run                  // measured or killed
	killed               []string                        // why
	took                 map[string]*histogram.Histogram // latency by kind of outcome, all repeats
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

func offered(r *results.Run) float64 { return float64(r.Offered) }

// multiple is the load as a multiple of the capacity; 0 if it is not one.
func (c *cell) multiple() (x float64) {
	if len(c.runs) > 0 {
		x, _ = c.runs[0].Params["load"].(float64)
	}
	return x
}

// series is the time line of the first repeat, as long as it was loaded.
func (c *cell) series() []results.Point {
	if len(c.runs) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(c.runs[0].Series), func(p results.Point) bool { return p.At >= c.runs[0].Elapsed })
}

// sent reports whether the contestant had requests to answer, or none was
// counted because it failed or was killed.
func (c *cell) sent() bool {
	return len(c.runs) == 0 || len(c.killed) > 0 || slices.Max(c.stat(offered)) > 0
}

// idle reports whether nothing was sent, as in a run that only holds
// goroutines: it has no rates and no latency.
func (l *load) idle() bool { return !slices.ContainsFunc(l.cells, (*cell).sent) }

// untimed reports whether there were answers but their latency was not measured: units
// of work that are too short for a clock.
func (l *load) untimed() bool {
	answers := func(c *cell) bool { return c.stat(rate("ok")).median()+c.stat(rate("rejected")).median() > 0 }
	timed := func(c *cell) bool { return c.took["ok"] != nil || c.took["rejected"] != nil }
	return l.idle() || slices.ContainsFunc(l.cells, answers) && !slices.ContainsFunc(l.cells, timed)
}

// cell returns the contestant's cell, or nil.
func (l *load) cell(pattern string) *cell {
	if i := slices.IndexFunc(l.cells, func(c *cell) bool { return c.pattern == pattern }); i >= 0 {
		return l.cells[i]
	}
	return nil
}

// newSession sorts the runs into cells.
func newSession(fam ledger.Family, res results.Results, runs []results.Run) *session {
	s := &session{Family: fam, Results: res, runs: runs}
	s.Results.Schema = cmp.Or(res.Schema, results.Schema)
	cells := map[[3]string]*cell{}
	for i := range runs {
		r := &runs[i]
		if !slices.Contains(s.patterns, r.Pattern) {
			s.patterns = append(s.patterns, r.Pattern)
		}
		if r.Twin {
			continue
		}
		key := [3]string{r.Setup, r.Load, r.Pattern}
		if cells[key] == nil {
			cells[key] = &cell{setup: r.Setup, load: r.Load, pattern: r.Pattern, took: map[string]*histogram.Histogram{}}
			s.cells = append(s.cells, cells[key])
		}
		cells[key].add(r)
	}
	slices.SortFunc(s.patterns, byRank(knownPatterns))
	slices.SortFunc(s.cells, func(a, b *cell) int {
		return cmp.Or(byRank(knownSetups)(a.setup, b.setup), cmp.Compare(a.multiple(), b.multiple()), byRank(knownLoads)(a.load, b.load), byRank(knownPatterns)(a.pattern, b.pattern))
	})
	for _, c := range s.cells {
		if n := len(s.setups); n == 0 || s.setups[n-1].name != c.setup {
			s.setups = append(s.setups, &setup{name: c.setup})
		}
		g := s.setups[len(s.setups)-1]
		if n := len(g.loads); n == 0 || g.loads[n-1].name != c.load {
			g.loads = append(g.loads, &load{name: c.load})
		}
		l := g.loads[len(g.loads)-1]
		l.cells, g.cells = append(l.cells, c), append(g.cells, c)
	}
	return s
}

func (c *cell) add(r *results.Run) {
	if r.Failed != "" {
		return
	}
	c.runs = append(c.runs, r)
	if r.Killed != "" {
		c.killed = append(c.killed, r.Killed)
	}
	for _, o := range r.Outcomes {
		if o.Latency == nil || o.Latency.Count() == 0 {
			continue
		}
		if c.took[o.Kind] == nil {
			c.took[o.Kind] = &histogram.Histogram{}
		}
		c.took[o.Kind].Merge(o.Latency)
	}
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
