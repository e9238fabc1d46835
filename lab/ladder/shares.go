package ladder

import (
	"math"
	"slices"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/judge"
)

// reading returns the processor time of a request, in microseconds: in one round, or the
// median of all.
type reading = func(ledger.Key) float64

// worth is what a saving takes off, in the mean of all orders in which savings can be
// added: its Shapley value.
func worth(r Rungs, of reading) (us float64) {
	for set := range AllRungs + 1 {
		if !set.Has(r) {
			us += weights[set.count()] * (of(small(set)) - of(small(set|r)))
		}
	}
	return us
}

// weights are the shares of all orders in which exactly these k savings come first and a
// certain one next: k!(5−k)!/6!.
var weights = [...]float64{1. / 6, 1. / 30, 1. / 60, 1. / 60, 1. / 30, 1. / 6}

// parts are the lead, what it is made of, and a rung that changes nothing.
func parts(of reading) map[string]float64 {
	none, every := named(slow).AndTwin(true), named(fast).AndTwin(true)
	us := map[string]float64{
		"lead_us":      of(named(NetHTTP)) - of(named(FastHTTP)),
		"rest_high_us": of(named(NetHTTP)) - of(none[0]), "rest_low_us": of(every[0]) - of(named(FastHTTP)),
		"nothing_us": (of(none[0]) - of(none[1]) + of(every[1]) - of(every[0])) / 2,
	}
	for _, r := range Ordered {
		us[r.key()] = worth(r, of)
	}
	return us
}

// divide keeps the parts of the lead with net/http, and with its twin what they are by the
// twins of all servers that have one. Without a lead there are none.
func divide(keys []ledger.Key, runs []results.Run) {
	have := map[ledger.Key][]float64{} // what every round says, and last their median
	for i, k := range keys {
		have[k] = append(slices.Clone(runs[i].Blocks["cpu_us"]), runs[i].Extra["cpu_us"])
	}
	last := len(have[named(NetHTTP)]) - 1
	for i, own := range keys {
		keepShare(own, runs[i].Extra, func(k ledger.Key) float64 { return have[k][last] })
		if own.Setup != allServers || own.Pattern != NetHTTP {
			continue
		}
		us := make([]map[string]float64, last+1)
		for round := range us {
			us[round] = parts(func(k ledger.Key) float64 {
				k.Twin = k.Twin || own.Twin && slices.Contains(twice, k.Pattern)
				return have[k][round]
			})
		}
		if us[last]["lead_us"] <= 0 {
			continue
		}
		for key, median := range us[last] {
			var rounds []float64
			for _, round := range us[:last] {
				rounds = append(rounds, round[key])
			}
			ledger.Keep(&runs[i], key, rounds)
			runs[i].Extra[key] = median // so that they add up in the chart
		}
		if half := widest(runs[i].Blocks); !math.IsNaN(half) {
			runs[i].Extra["widest"] = half
		}
	}
}

// widest is half of the interval of the share that is known least, in per cent of the
// lead, over the rounds; NaN if these are too few.
func widest(us map[string][]float64) (half float64) {
	for _, r := range Ordered {
		shares := slices.Clone(us[r.key()])
		for i := range shares {
			shares[i] *= 100 / us["lead_us"][i]
		}
		over := judge.Judge(judge.Question{}, judge.Input{Values: shares})
		half = max(half, (over.High-over.Low)/2) // NaN if one of them is
	}
	return half
}

// keepShare keeps with a small server that one saving was added to or taken from, what that saving
// is of the lead.
func keepShare(k ledger.Key, x map[string]float64, of reading) {
	beside, sign := map[string]string{addedToNone: slow, removedFromAll: fast}[k.Setup], 1.0
	if k.Setup == addedToNone {
		sign = -1 // it is not spent
	}
	if lead := of(named(NetHTTP)) - of(named(FastHTTP)); beside != "" && lead > 0 {
		x["share"] = 100 * sign * (x["cpu_us"] - of(named(beside))) / lead
	}
}
