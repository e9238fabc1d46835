package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/usage"
)

// stat is one figure over the repeats of a contestant.
type stat []float64

func (s stat) median() float64 { return usage.Median(s) }

func (s stat) mean() float64 {
	sum := 0.0
	for _, v := range s {
		sum += v
	}
	return sum / float64(max(len(s), 1))
}

// latency is the usual summary of a distribution, in nanoseconds, over repeats.
type latency struct {
	count                             uint64
	min, mean, median, p95, p99, peak stat
	merged                            histogram.Histogram // all repeats
}

func (l *latency) add(h *histogram.Histogram) {
	if h == nil || h.Count() == 0 {
		return
	}
	l.count += h.Count()
	l.merged.Merge(h)
	l.min = append(l.min, float64(h.Min()))
	l.mean = append(l.mean, h.Mean())
	l.median = append(l.median, float64(h.Quantile(.5)))
	l.p95 = append(l.p95, float64(h.Quantile(.95)))
	l.p99 = append(l.p99, float64(h.Quantile(.99)))
	l.peak = append(l.peak, float64(h.Max()))
}

// cell is all figures of one contestant under one load in one set-up.
// Twins of A/A pairs are not in it: they measure noise.
type cell struct {
	setup, load, pattern string
	offered              stat
	good, refused        stat // per second
	errors, timeouts     stat
	refusedShare         stat // of the offered, 0..1
	ok, rejected         latency
	allocs, bytes        stat // per offered request
	goroutines, rss, gc  stat
	reuse                stat            // only where there is a pool
	multiple             float64         // of the capacity; 0: the load is none
	admitted             stat            // p99 latency of whatever was not refused
	series               []results.Point // of the first repeat, as long as it was loaded
	extra                map[string]stat // figures of one experiment only
	killed, failed       []string
	runs                 int // measured or killed
}

// total is what the published harnesses call throughput: all answers.
func (c *cell) total() float64 {
	return c.good.median() + c.refused.median() + c.errors.median() + c.timeouts.median()
}

func (c *cell) add(r *results.Run) {
	if r.Failed != "" {
		c.failed = append(c.failed, r.Failed)
		return
	}
	c.runs++
	if r.Killed != "" {
		c.killed = append(c.killed, r.Killed)
	}
	c.offered = append(c.offered, float64(r.Offered))
	c.good = append(c.good, r.Rate("ok"))
	c.refused = append(c.refused, r.Rate("rejected"))
	c.errors = append(c.errors, r.Rate("error"))
	c.timeouts = append(c.timeouts, r.Rate("timeout"))
	c.refusedShare = append(c.refusedShare, r.Share("rejected"))
	c.ok.add(r.Of("ok").Latency)
	c.rejected.add(r.Of("rejected").Latency)
	c.multiple = multiple(r)
	var admitted histogram.Histogram
	for _, o := range r.Outcomes {
		if o.Kind != "rejected" && o.Latency != nil {
			admitted.Merge(o.Latency)
		}
	}
	if admitted.Count() > 0 {
		c.admitted = append(c.admitted, float64(admitted.Quantile(.99)))
	}
	if c.series == nil {
		c.series = slices.DeleteFunc(slices.Clone(r.Series), func(p results.Point) bool { return p.At >= r.Elapsed })
	}

	for key, v := range r.Extra {
		c.extra[key] = append(c.extra[key], v)
	}
	p := r.Process
	if r.Offered > 0 && p.Mallocs > 0 {
		c.allocs = append(c.allocs, float64(p.Mallocs)/float64(r.Offered))
		c.bytes = append(c.bytes, float64(p.AllocBytes)/float64(r.Offered))
	}
	if p.PeakGoroutines > 0 {
		c.goroutines = append(c.goroutines, float64(p.PeakGoroutines))
		c.gc = append(c.gc, p.GCShare)
	}
	if p.PeakRSS > 0 {
		c.rss = append(c.rss, float64(p.PeakRSS))
	}
	if p.ReuseRate > 0 {
		c.reuse = append(c.reuse, p.ReuseRate)
	}
}

// loadGroup is the contestants under one load.
type loadGroup struct {
	load  string
	cells []*cell
}

// setupGroup is the loads of one set-up.
type setupGroup struct {
	setup string
	loads []*loadGroup
}

// summary is all runs in reading order.
type summary struct {
	setups   []*setupGroup
	patterns []string // every contestant, in the order that fixes its colour
	twins    int
	failed   []*results.Run
	killed   []*results.Run
}

// Known names come first, in the order of the ledger; the others follow by name.
var (
	knownSetups   = []string{"published shape", "published", "in process", "real", "for real"}
	knownLoads    = []string{"low", "high", "sustained"}
	knownPatterns = []string{"spillway", "naive", "workerpool", "optimized", "limiter"}
)

func byRank(known []string) func(a, b string) int {
	rank := func(s string) int {
		if i := slices.Index(known, s); i >= 0 {
			return i
		}
		return len(known)
	}
	return func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), natural(a, b))
	}
}

// natural compares names so that numbers in them count as numbers: 1→100 comes
// after 1→2.
func natural(a, b string) int {
	for x, y := a, b; ; {
		m, u, moreX := chunk(x)
		n, v, moreY := chunk(y)
		if by := cmp.Or(cmp.Compare(m, n), cmp.Compare(u, v)); by != 0 {
			return by
		}
		if moreX == x && moreY == y {
			return cmp.Compare(a, b)
		}
		x, y = moreX, moreY
	}
}

// chunk splits the text before the first number, and that number, off s.
func chunk(s string) (text string, n int, rest string) {
	digits := "0123456789"
	i := strings.IndexAny(s, digits)
	if i < 0 {
		return s, 0, ""
	}
	rest = strings.TrimLeft(s[i:], digits)
	n, _ = strconv.Atoi(s[i : len(s)-len(rest)])
	return s[:i], n, rest
}

func summarize(runs []results.Run) *summary {
	s := &summary{}
	cells := map[[3]string]*cell{}
	for i := range runs {
		r := &runs[i]
		if r.Failed != "" {
			s.failed = append(s.failed, r)
		}
		if r.Killed != "" {
			s.killed = append(s.killed, r)
		}
		if !slices.Contains(s.patterns, r.Pattern) {
			s.patterns = append(s.patterns, r.Pattern)
		}
		if r.Twin {
			s.twins++
			continue
		}
		key := [3]string{r.Setup, r.Load, r.Pattern}
		if cells[key] == nil {
			cells[key] = &cell{setup: r.Setup, load: r.Load, pattern: r.Pattern, extra: map[string]stat{}}
		}
		cells[key].add(r)
	}
	slices.SortFunc(s.patterns, byRank(knownPatterns))

	all := make([]*cell, 0, len(cells))
	for _, c := range cells {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *cell) int {
		return cmp.Or(byRank(knownSetups)(a.setup, b.setup), cmp.Compare(a.multiple, b.multiple), byRank(knownLoads)(a.load, b.load), byRank(knownPatterns)(a.pattern, b.pattern))
	})
	for _, c := range all {
		if n := len(s.setups); n == 0 || s.setups[n-1].setup != c.setup {
			s.setups = append(s.setups, &setupGroup{setup: c.setup})
		}
		g := s.setups[len(s.setups)-1]
		if n := len(g.loads); n == 0 || g.loads[n-1].load != c.load {
			g.loads = append(g.loads, &loadGroup{load: c.load})
		}
		l := g.loads[len(g.loads)-1]
		l.cells = append(l.cells, c)
	}
	return s
}

// shape is the number that fixes a contestant's colour and marker.
func (s *summary) shape(pattern string) int { return max(slices.Index(s.patterns, pattern), 0) }

// setupName turns a run's set-up into the words of the claims.
func setupName(setup string) string {
	switch setup {
	case "published":
		return "as published"
	case "real":
		return "for real"
	}
	return setup
}

// loadName is a load in words. Only the loads of the ledger get the word "load";
// other names are clear without it.
func loadName(load string) string {
	if slices.Contains(knownLoads, load) {
		return load + " load"
	}
	return load
}

// title is a readable name of a run.
func title(r *results.Run) string {
	return fmt.Sprintf("%s, %s, %s, repeat %d", setupName(r.Setup), loadName(r.Load), r.Pattern, r.Repeat+1)
}

// idle reports whether nothing was sent, as in a run that only holds
// goroutines: it has no rates and no latency.
func (l *loadGroup) idle() bool {
	return !slices.ContainsFunc(l.cells, func(c *cell) bool { return c.sent() })
}

// untimed reports whether there were answers but their latency was not measured: units
// of work that are too short for a clock.
func (l *loadGroup) untimed() bool {
	answers := func(c *cell) bool { return c.good.median()+c.refused.median() > 0 }
	timed := func(c *cell) bool { return c.ok.count+c.rejected.count > 0 }
	return l.idle() || slices.ContainsFunc(l.cells, answers) && !slices.ContainsFunc(l.cells, timed)
}

// sent reports whether the contestant had requests to answer, or none was
// counted because it failed or was killed.
func (c *cell) sent() bool {
	return c.runs == 0 || len(c.killed) > 0 || slices.ContainsFunc(c.offered, func(n float64) bool { return n > 0 })
}

// verdicts from best to worst, and how often each was given.
var verdictOrder = []results.Verdict{results.Holds, results.Fails, results.Inconclusive, results.NeedsHardware}

type tally struct {
	Verdict results.Verdict
	N       int
}

func tallyOf(claims []results.OldClaim) []tally {
	var out []tally
	for _, v := range verdictOrder {
		n := 0
		for _, c := range claims {
			if c.Verdict == v {
				n++
			}
		}
		if n > 0 {
			out = append(out, tally{v, n})
		}
	}
	return out
}

// words is a count with correct grammar: "7 claims hold".
func (t tally) words() string {
	one := t.N == 1
	switch t.Verdict {
	case results.Holds:
		return pick(one, "holds", "hold")
	case results.Fails:
		return pick(one, "fails", "fail")
	case results.NeedsHardware:
		return pick(one, "needs other hardware", "need other hardware")
	}
	return string(t.Verdict)
}

func pick(cond bool, a, b string) string {
	if cond {
		return a
	}
	return b
}
