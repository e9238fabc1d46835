package report

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

// session is everything that is shown. The template of the page and the terminal ask it
// for the same words and tables.
type session struct {
	Family   ledger.Family
	Results  results.Results
	Setups   []*setup // in reading order
	runs     []results.Run
	cells    []*cell  // of all set-ups
	patterns []string // every contestant, in the order that fixes its colour
	detail   detail
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

func (c *cell) stat(of figure) (s stat) {
	for _, r := range c.runs {
		if v := of(r); !math.IsNaN(v) {
			s = append(s, v)
		}
	}
	return s
}

// sweep are the multiples of the capacity that a set-up was loaded with.
func (g *setup) sweep() (multiples []float64) {
	for _, l := range g.loads {
		if x := l.cells[0].multiple; x > 0 {
			multiples = append(multiples, x)
		}
	}
	return multiples
}

// cell returns the contestant's cell, or an empty one.
func (l *load) cell(pattern string) *cell {
	if i := slices.IndexFunc(l.cells, func(c *cell) bool { return c.Pattern == pattern }); i >= 0 {
		return l.cells[i]
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
	return s
}

// Known names come first, in the order of the ledger; the others follow by name.
var (
	knownSetups   = []string{"published shape", "published", "real", "for real"}
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
