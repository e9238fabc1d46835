package ladder

import (
	"fmt"
	"math"
	"strings"

	"github.com/spillway-go/spillway/lab/claims"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/judge"
	"github.com/spillway-go/spillway/lab/results"
)

// cell names a cell of the plan.
type cell = experiment.Key

func named(name string) cell { return cell{Setup: Servers, Load: Load, Pattern: name} }
func added(r Rungs) cell     { return cell{Setup: Added, Load: Load, Pattern: r.String()} }
func removed(r Rungs) cell   { return cell{Setup: Removed, Load: Load, Pattern: r.String()} }
func fastLess(r Rungs) cell  { return cell{Setup: FastLess, Load: Load, Pattern: r.String()} }

func twin(c cell) cell {
	c.Twin = true
	return c
}

func cpu(r results.Run) float64 { return r.Extra["cpu_us"] }

// step is a difference of processor time: of two cells, or the mean of several,
// times a number.
type step struct {
	pairs [][2]cell
	times float64
}

func stepOf(pairs ...[2]cell) step { return step{pairs, 1} }
func addedTo(r Rungs) step         { return stepOf([2]cell{named(slow), added(r)}) }
func removedFrom(r Rungs) step     { return stepOf([2]cell{removed(r), named(fast)}) }
func both(r Rungs) step {
	return stepOf([2]cell{named(slow), added(r)}, [2]cell{removed(r), named(fast)})
}

// everySaving is the sum of what each is worth in both orders.
func everySaving() step {
	all := step{times: float64(len(ordered))}
	for _, r := range ordered {
		all.pairs = append(all.pairs, both(r).pairs...)
	}
	return all
}

// evidence is the runs of a session.
type evidence struct{ experiment.Evidence }

// Judge decides every claim. Every figure is made within a repeat, whose servers
// took turns.
func (Experiment) Judge(runs []results.Run, seed uint64) []results.Claim {
	e := evidence{experiment.Evidence{Runs: runs, Seed: seed}}
	worker := claims.LadderWorkers.Judge("both orders", e.shares(both(Workers)))
	order := []results.Claim{e.order(State, Bytes), e.order(Bytes, Parser), e.order(Parser, Workers)}
	whole := claims.G7(worker, order...)
	whole.Why += " " + e.largest()
	out := []results.Claim{
		whole, worker,
		claims.LadderWorkers.Judge("added to none", e.shares(addedTo(Workers))),
		claims.LadderWorkers.Judge("taken from all", e.shares(removedFrom(Workers))),
		claims.LadderWorkers.Judge("given to net/http", e.shares(stepOf([2]cell{named(NetHTTP), named(NetHTTPPooled)}))),
		claims.LadderWorkers.Judge("taken from fasthttp", e.shares(stepOf([2]cell{fastLess(Workers), named(FastHTTP)}))),
	}
	out = append(out, order...)
	out = append(out, claims.LadderMost.Judge("both orders", sum(e.shares(both(State)), e.shares(both(Bytes)))))
	for _, r := range ordered {
		out = append(out, claims.LadderCounts.Judge(r.String(), e.shares(both(r))))
	}
	placebo := stepOf([2]cell{named(slow), twin(named(slow))}, [2]cell{twin(named(fast)), named(fast)})
	return append(out,
		claims.LadderExplained.Judge("difference of the ends", e.difference()),
		claims.LadderExplained.Judge("overlap of the ends", e.overlap()),
		claims.LadderExplained.Judge("sum of the shares", e.shares(everySaving())),
		e.precise(),
		claims.LadderPlacebo.Judge("both orders", e.shares(placebo)))
}

// shares is a step in per cent of fasthttp's lead in the same repeat.
func (e evidence) shares(s step) judge.Input {
	return e.each(func(of func(cell) float64) float64 {
		total := 0.0
		for _, pair := range s.pairs {
			total += of(pair[0]) - of(pair[1])
		}
		return 100 * s.times * total / float64(len(s.pairs)) / (of(named(NetHTTP)) - of(named(FastHTTP)))
	})
}

// difference is that of the small server's ends, in per cent of the lead.
func (e evidence) difference() judge.Input {
	return e.each(func(of func(cell) float64) float64 {
		return 100 * (of(named(slow)) - of(named(fast))) / (of(named(NetHTTP)) - of(named(FastHTTP)))
	})
}

// overlap is the part of the way from fasthttp to net/http that lies between
// the two ends of the small server as they stand, in per cent.
func (e evidence) overlap() judge.Input {
	return e.each(func(of func(cell) float64) float64 {
		low, high := of(named(FastHTTP)), of(named(NetHTTP))
		covered := min(of(named(slow)), high) - max(of(named(fast)), low)
		return 100 * max(0, covered) / (high - low)
	})
}

// each asks a figure of every repeat that has all that the figure needs.
// Without a lead there is nothing to share: that figure is not a number, which
// the judge refuses.
func (e evidence) each(figure func(of func(cell) float64) float64) judge.Input {
	in := judge.Input{Seed: e.Seed}
	have := map[cell]map[int]results.Run{}
	for _, base := range e.InOrder(named(NetHTTP)) {
		complete := true
		v := figure(func(c cell) float64 {
			if have[c] == nil {
				have[c] = e.Of(c)
			}
			r, ok := have[c][base.Repeat]
			if !ok {
				complete = false
				in.Missing = e.Missing(c)
			}
			return cpu(r)
		})
		if !complete {
			continue
		}
		if low, ok := e.Of(named(FastHTTP))[base.Repeat]; ok && cpu(base) <= cpu(low) {
			v = math.NaN()
		}
		in.Values = append(in.Values, v)
	}
	if len(in.Values) > 0 {
		in.Missing = ""
	} else if in.Missing == "" {
		in.Missing = e.Missing(named(NetHTTP))
	}
	return in
}

// sum adds two shares of the same repeats.
func sum(a, b judge.Input) judge.Input {
	if len(a.Values) != len(b.Values) || b.Missing != "" {
		a.Values, a.Missing = nil, "The savings were not measured in the same repeats."
		return a
	}
	for i := range a.Values {
		a.Values[i] += b.Values[i]
	}
	return a
}

// order asks whether one saving's share is larger than the next one's.
func (e evidence) order(more, less Rungs) results.Claim {
	a, b := e.shares(both(more)), e.shares(both(less))
	in := judge.Input{Seed: e.Seed, Missing: a.Missing + b.Missing}
	if len(a.Values) == len(b.Values) {
		for i := range a.Values {
			in.Pairs = append(in.Pairs, judge.Pair{A: a.Values[i], B: b.Values[i]})
		}
	}
	return claims.LadderOrder.Judge(fmt.Sprintf("%s > %s", more, less), in)
}

// share is a saving's share with its interval; ok: there is one.
func (e evidence) share(r Rungs) (c results.Claim, ok bool) {
	c = claims.LadderCounts.Judge(r.String(), e.shares(both(r)))
	return c, c.Low != 0 || c.High != 0
}

// precise judges the widest half of all intervals.
func (e evidence) precise() results.Claim {
	in := judge.Input{Seed: e.Seed}
	var told []string
	repeats := 0
	for _, r := range ordered {
		c, ok := e.share(r)
		if !ok {
			in.Missing = "A share has no interval: " + c.Why
			break
		}
		half := (c.High - c.Low) / 2
		repeats = c.Runs
		in.Values = append(in.Values, half)
		told = append(told, fmt.Sprintf("%s %.1f %% ± %.1f", r, c.Measured, half))
	}
	c := claims.LadderPrecise.Judge("both orders", in)
	if in.Missing == "" {
		c.Why = fmt.Sprintf("Shares of the lead over %d repeats, with half of their intervals: %s.", repeats, strings.Join(told, "; "))
	}
	c.Runs = repeats
	return c
}

// largest names the saving that is worth the most.
func (e evidence) largest() string {
	var best results.Claim
	for _, r := range ordered {
		if c, ok := e.share(r); ok && c.Measured > best.Measured {
			best = c
		}
	}
	if best.Setup == "" {
		return ""
	}
	return fmt.Sprintf("The largest share is that of %q, with %.0f %% (%.0f to %.0f).", best.Setup, best.Measured, best.Low, best.High)
}
