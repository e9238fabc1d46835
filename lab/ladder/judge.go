package ladder

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/lab/claims"
	"github.com/spillway-go/spillway/lab/experiment"
	judge "github.com/spillway-go/spillway/lab/oldjudge"
	"github.com/spillway-go/spillway/lab/results"
)

// cell names a cell of the plan.
type cell = experiment.Key

func named(name string) cell { return cell{Setup: Servers, Load: Load, Pattern: name} }
func added(r Rungs) cell     { return small(r) }
func removed(r Rungs) cell   { return small(AllRungs &^ r) }
func fastLess(r Rungs) cell  { return cell{Setup: FastLess, Load: Load, Pattern: r.String()} }

// small is the small server with these savings.
func small(save Rungs) cell {
	switch left := AllRungs &^ save; {
	case save == 0:
		return named(slow)
	case left == 0:
		return named(fast)
	case save.count() == 1:
		return cell{Setup: Added, Load: Load, Pattern: save.String()}
	case left.count() == 1:
		return cell{Setup: Removed, Load: Load, Pattern: left.String()}
	}
	return cell{Setup: Others, Load: Load, Pattern: save.String()}
}

func twin(c cell) cell {
	c.Twin = true
	return c
}

func cpu(r results.Run) float64 { return r.Extra["cpu_us"] }

// reading returns the processor time of a request, in microseconds, within one
// repeat.
type reading = func(cell) float64

// step is a difference of processor time: that of two cells, or the mean of
// several such.
type step [][2]cell

// Both ends of the small server run twice, and both runs count the same.
func fromSlow(c cell) step { return step{{named(slow), c}, {twin(named(slow)), c}} }
func toFast(c cell) step   { return step{{c, named(fast)}, {c, twin(named(fast))}} }

// us is the time of the step, in microseconds.
func (s step) us(of reading) float64 {
	total := 0.0
	for _, pair := range s {
		total += of(pair[0]) - of(pair[1])
	}
	return total / float64(len(s))
}

// mean is the mean over the rounds, which have the same number of requests. Processor
// time has no long tail, and its mean varies less than its median.
func mean(v []float64) float64 {
	total := 0.0
	for _, x := range v {
		total += x
	}
	return total / float64(max(len(v), 1))
}

func lead(of reading) float64 { return of(named(NetHTTP)) - of(named(FastHTTP)) }

// at is the small server with these savings. Its ends run twice.
func at(of reading, save Rungs) float64 {
	c := small(save)
	if save == 0 || save == AllRungs {
		return (of(c) + of(twin(c))) / 2
	}
	return of(c)
}

// worth is what a saving takes off, in the mean of all orders in which savings
// can be added: its Shapley value, in microseconds.
func worth(r Rungs) func(reading) float64 {
	return func(of reading) float64 {
		us := 0.0
		for set := range AllRungs + 1 {
			if !set.Has(r) {
				us += weight(set.count()) * (at(of, set) - at(of, set|r))
			}
		}
		return us
	}
}

// weight is in how many of all orders exactly these k savings come first and a
// certain one next.
func weight(k int) float64 {
	w := 1 / float64(len(Ordered))
	for i := range k { // 1 over the sets of k of the others
		w *= float64(i+1) / float64(len(Ordered)-1-i)
	}
	return w
}

// rest is a part of the lead that no saving accounts for. Both rests and the shares
// of all savings add up to the lead, in every repeat.
type rest struct {
	name, key string
	us        func(reading) float64
}

var rests = []rest{
	{restHigh, "rest_high_us", func(of reading) float64 { return of(named(NetHTTP)) - at(of, 0) }},
	{restLow, "rest_low_us", func(of reading) float64 { return at(of, AllRungs) - of(named(FastHTTP)) }},
}

// evidence is the runs of a session.
type evidence struct{ experiment.Evidence }

// Judge decides every claim. Every figure is computed within a repeat, whose servers
// took turns.
func (Classic) Judge(runs []results.Run, seed uint64) []results.OldClaim {
	e := evidence{experiment.Evidence{Runs: runs, Seed: seed}}
	worker := claims.LadderWorkers.Judge("all orders", e.shares(worth(Workers)))
	order := []results.OldClaim{e.order(State, Bytes), e.order(Bytes, Parser), e.order(Parser, Workers)}
	whole := claims.G7(worker, order...)
	whole.Why += " " + e.ranking()
	out := []results.OldClaim{
		whole, worker,
		claims.LadderWorkers.Judge("added to none", e.shares(fromSlow(added(Workers)).us)),
		claims.LadderWorkers.Judge("taken from all", e.shares(toFast(removed(Workers)).us)),
		claims.LadderWorkers.Judge("given to net/http", e.shares(step{{named(NetHTTP), named(NetHTTPPooled)}}.us)),
		claims.LadderWorkers.Judge("taken from fasthttp", e.shares(step{{fastLess(Workers), named(FastHTTP)}}.us)),
	}
	out = append(out, order...)
	out = append(out, claims.LadderMost.Judge("all orders", sum(e.shares(worth(State)), e.shares(worth(Bytes)))))
	for _, r := range Ordered {
		out = append(out, claims.LadderCounts.Judge(r.String(), e.shares(worth(r))))
	}
	for _, r := range rests {
		out = append(out, claims.LadderRest.Judge(r.name, e.shares(r.us)))
	}
	placebo := step{{named(slow), twin(named(slow))}, {twin(named(fast)), named(fast)}}
	return append(out,
		claims.LadderExplained.Judge("all orders", e.explained()),
		e.precise(),
		claims.LadderPlacebo.Judge("all orders", e.shares(placebo.us)))
}

// shares is a time in per cent of fasthttp's lead in the same repeat.
func (e evidence) shares(us func(reading) float64) judge.Input {
	return e.each(func(of reading) float64 { return 100 * us(of) / lead(of) })
}

// explained is the lead without its rests, in per cent; see the package comment.
// A rest below 0 explains no more than one above, so each counts with the sign
// of its mean over the repeats. With a sign in each repeat, noise alone would
// count as a rest.
func (e evidence) explained() judge.Input {
	var all []judge.Input
	for _, r := range rests {
		all = append(all, e.shares(r.us))
	}
	in := all[0]
	for _, part := range all {
		if len(part.Values) != len(in.Values) || part.Missing != "" {
			return judge.Input{Seed: e.Seed, Missing: "The ends of the ladder were not measured in the same repeats."}
		}
	}
	in.Values = slices.Repeat([]float64{100}, len(in.Values))
	for _, part := range all {
		sign := math.Copysign(1, mean(part.Values))
		for i, v := range part.Values {
			in.Values[i] -= sign * v
		}
	}
	return in
}

// each computes a figure for every repeat that has all the runs it needs. Without a
// lead a share is not a number, which the judge refuses.
func (e evidence) each(figure func(reading) float64) judge.Input {
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

// order compares each saving's share with the next one's.
func (e evidence) order(more, less Rungs) results.OldClaim {
	a, b := e.shares(worth(more)), e.shares(worth(less))
	in := judge.Input{Seed: e.Seed, Missing: a.Missing + b.Missing}
	if len(a.Values) == len(b.Values) {
		for i := range a.Values {
			in.Pairs = append(in.Pairs, judge.Pair{A: a.Values[i], B: b.Values[i]})
		}
	}
	return claims.LadderOrder.Judge(fmt.Sprintf("%s > %s", more, less), in)
}

// share is a saving's share with its interval; ok: there is one.
func (e evidence) share(r Rungs) (c results.OldClaim, ok bool) {
	c = claims.LadderCounts.Judge(r.String(), e.shares(worth(r)))
	return c, c.Low != 0 || c.High != 0
}

// precise judges the widest half interval.
func (e evidence) precise() results.OldClaim {
	in := judge.Input{Seed: e.Seed}
	var parts []string
	repeats := 0
	for _, r := range Ordered {
		c, ok := e.share(r)
		if !ok {
			in.Missing = "A share has no interval: " + c.Why
			break
		}
		half := (c.High - c.Low) / 2
		repeats = c.Runs
		in.Values = append(in.Values, half)
		parts = append(parts, fmt.Sprintf("%s %.1f %% ± %.1f", r, c.Measured, half))
	}
	c := claims.LadderPrecise.Judge("all orders", in)
	if in.Missing == "" {
		c.Why = fmt.Sprintf("Shares of the lead over %d repeats, with half of their intervals: %s.", repeats, strings.Join(parts, "; "))
	}
	c.Runs = repeats
	return c
}

// ranking names the savings by their shares, the largest first.
func (e evidence) ranking() string {
	var all []results.OldClaim
	for _, r := range Ordered {
		if c, ok := e.share(r); ok {
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return ""
	}
	slices.SortStableFunc(all, func(a, b results.OldClaim) int { return cmp.Compare(b.Measured, a.Measured) })
	parts := make([]string, len(all))
	for i, c := range all {
		parts[i] = fmt.Sprintf("%s %.1f %% (%.1f to %.1f)", c.Setup, c.Measured, c.Low, c.High)
	}
	return "By share: " + strings.Join(parts, ", ") + "."
}
