package experiment

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	judge "github.com/spillway-go/spillway/lab/oldjudge"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/usage"
)

// Evidence is the runs of a session, queried cell by cell.
type Evidence struct {
	Runs       []results.Run
	Seed       uint64 // of the judge's bootstrap
	WithKilled bool   // use the counts of killed runs
}

// Key names a cell.
type Key struct {
	Setup, Load, Pattern string
	Twin                 bool
}

// Figure returns one figure of a run.
type Figure func(results.Run) float64

func (k Key) of(r results.Run) bool {
	return r.Setup == k.Setup && r.Load == k.Load && r.Pattern == k.Pattern && r.Twin == k.Twin
}

// Of returns the measured runs of a cell by their repeat.
func (e Evidence) Of(k Key) map[int]results.Run {
	out := map[int]results.Run{}
	for _, r := range e.Runs {
		if k.of(r) && r.Failed == "" && (r.Killed == "" || e.WithKilled) && r.Elapsed > 0 {
			out[r.Repeat] = r
		}
	}
	return out
}

// InOrder returns the measured runs of a cell in the order of the repeats.
func (e Evidence) InOrder(k Key) []results.Run {
	runs := e.Of(k)
	var out []results.Run
	for _, n := range slices.Sorted(maps.Keys(runs)) {
		out = append(out, runs[n])
	}
	return out
}

// Values returns one figure of every repeat.
func (e Evidence) Values(k Key, figure Figure) judge.Input {
	in := judge.Input{Seed: e.Seed, Missing: e.Missing(k)}
	for _, r := range e.InOrder(k) {
		in.Values = append(in.Values, figure(r))
	}
	return in
}

// Pairs returns the figure of two cells for the repeats that have both.
func (e Evidence) Pairs(a, b Key, figure Figure) judge.Input {
	in := judge.Input{Seed: e.Seed, Missing: e.Missing(a, b)}
	other := e.Of(b)
	for _, r := range e.InOrder(a) {
		if o, ok := other[r.Repeat]; ok {
			in.Pairs = append(in.Pairs, judge.Pair{A: figure(r), B: figure(o)})
		}
	}
	return in
}

// Ratios returns a block figure of a over that of b for the repeats that have both: the
// median of the ratios within a round. B of each pair is 1.
func (e Evidence) Ratios(a, b Key, figure string) judge.Input {
	in := judge.Input{Seed: e.Seed, Missing: e.Missing(a, b)}
	other := e.Of(b)
	for _, r := range e.InOrder(a) {
		if o, ok := other[r.Repeat]; ok {
			in.Pairs = append(in.Pairs, judge.Pair{A: usage.Median(r.Ratios(&o, figure)), B: 1})
		}
	}
	return in
}

// Missing says why one of the cells has no figure at all; "" if all have some.
func (e Evidence) Missing(keys ...Key) string {
	for _, k := range keys {
		if len(e.Of(k)) > 0 {
			continue
		}
		for _, r := range e.Runs {
			switch {
			case !k.of(r):
			case r.Failed != "":
				return fmt.Sprintf("%s (%s) could not be measured: %s.", k.Pattern, k.Load, r.Failed)
			case r.Killed != "":
				return fmt.Sprintf("%s (%s) was %s.", k.Pattern, k.Load, strings.TrimSuffix(r.Killed, "."))
			}
		}
		return fmt.Sprintf("%s (%s) was not run.", k.Pattern, k.Load)
	}
	return ""
}

// Number reads a parameter of a run, which is a float64 when read from disk; 0 if it
// is not a number.
func Number(parameter any) float64 {
	switch n := parameter.(type) {
	case float64:
		return n
	case int:
		return float64(n)
	}
	return 0
}
