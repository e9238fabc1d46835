package patterns

import (
	"fmt"
	"maps"
	"slices"

	judge "github.com/spillway-go/spillway/lab/oldjudge"
	"github.com/spillway-go/spillway/lab/results"
)

// evidence is the runs of a session, queried cell by cell.
type evidence struct {
	runs []results.Run
	seed uint64
}

type cell struct{ setup, load, pattern string }

// repeats returns the measured runs of a cell by their repeat.
func (e evidence) repeats(c cell, twin bool) map[int]results.Run {
	out := map[int]results.Run{}
	for _, r := range e.runs {
		if r.Setup == c.setup && r.Load == c.load && r.Pattern == c.pattern && r.Twin == twin && r.Failed == "" && r.Killed == "" && r.Elapsed > 0 {
			out[r.Repeat] = r
		}
	}
	return out
}

// of returns the measured runs of a cell in the order of the repeats.
func (e evidence) of(c cell) []results.Run {
	repeats := e.repeats(c, false)
	out := make([]results.Run, 0, len(repeats))
	for _, n := range slices.Sorted(maps.Keys(repeats)) {
		out = append(out, repeats[n])
	}
	return out
}

// values returns one figure of every repeat.
func (e evidence) values(c cell, figure func(results.Run) float64) judge.Input {
	in := judge.Input{Seed: e.seed, Missing: e.missing(c)}
	for _, run := range e.of(c) {
		in.Values = append(in.Values, figure(run))
	}
	return in
}

// pairs returns the figure of two cells for the repeats that have both. Without a
// figure the caller makes the pairs.
func (e evidence) pairs(a, b cell, figure func(results.Run) float64) judge.Input {
	in := judge.Input{Seed: e.seed, Missing: e.missing(a, b)}
	if figure != nil {
		in.Pairs = pair(e.repeats(a, false), e.repeats(b, false), figure)
	}
	return in
}

// twins pairs a cell with its A/A twin.
func (e evidence) twins(c cell, figure func(results.Run) float64) []judge.Pair {
	return pair(e.repeats(c, false), e.repeats(c, true), figure)
}

func pair(a, b map[int]results.Run, figure func(results.Run) float64) []judge.Pair {
	var out []judge.Pair
	for _, n := range slices.Sorted(maps.Keys(a)) {
		if other, ok := b[n]; ok {
			out = append(out, judge.Pair{A: figure(a[n]), B: figure(other)})
		}
	}
	return out
}

// missing says why one of the cells has no figure at all; "" if all have some.
func (e evidence) missing(cells ...cell) string {
	for _, c := range cells {
		if len(e.repeats(c, false)) > 0 {
			continue
		}
		for _, r := range e.runs {
			if r.Setup != c.setup || r.Load != c.load || r.Pattern != c.pattern {
				continue
			}
			if r.Killed != "" {
				return fmt.Sprintf("%s under %s load was %s.", c.pattern, c.load, r.Killed)
			}
			if r.Failed != "" {
				return fmt.Sprintf("%s under %s load could not be measured: %s.", c.pattern, c.load, r.Failed)
			}
		}
		return fmt.Sprintf("%s was not run under %s load.", c.pattern, c.load)
	}
	return ""
}

// because adds an explanation to a decided claim. A claim without a figure
// needs none.
func because(c results.OldClaim, format string, args ...any) results.OldClaim {
	if c.Runs > 0 && (c.Low != 0 || c.High != 0 || c.Measured != 0) {
		c.Why += " " + fmt.Sprintf(format, args...)
	}
	return c
}

// sizes says how many clients share how many workers.
func (e evidence) sizes(c cell) string {
	p := e.params(c)
	return fmt.Sprintf("%.0f clients share %.0f workers, and naive has one goroutine each", number(p["clients"]), number(p["workers"]))
}

// law is Little's law with the numbers of a cell.
func (e evidence) law(c cell) string {
	runs := e.of(c)
	if len(runs) == 0 {
		return ""
	}
	p := runs[0].Params
	mean := (number(p["min_latency_ms"]) + number(p["max_latency_ms"])) / 2
	return fmt.Sprintf("%.0f workers × %.3g ÷ %.3g ms succeed %.0f times a second",
		number(p["workers"]), 1-number(p["error_rate"]), mean, littlesLaw(runs[0]))
}

// share says how many of the clients fit into workers and queue, which is what
// decides the refused share.
func (e evidence) share(c cell) string {
	p := e.params(c)
	clients, fit := number(p["clients"]), number(p["workers"])+number(p["queue_size"])
	if clients <= fit {
		return fmt.Sprintf("All %.0f clients fit into workers and queue", clients)
	}
	return fmt.Sprintf("The sizes decide it: %.0f of %.0f clients find no room in workers and queue, %.0f %%, and those served meanwhile compete for room again",
		clients-fit, clients, 100*(clients-fit)/clients)
}

func (e evidence) params(c cell) map[string]any {
	if runs := e.of(c); len(runs) > 0 {
		return runs[0].Params
	}
	return nil
}
