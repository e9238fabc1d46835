package ladder

import (
	"math"
	"slices"

	"github.com/spillway-go/spillway/lab/judge"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

// reading returns the processor time of a request, in microseconds: in one round, or the
// median of all.
type reading = func(ledger.Key) float64

// worth is what a saving takes off, in the mean of all orders in which savings can be
// added: its Shapley value.
func worth(r Rungs) func(reading) float64 {
	return func(of reading) (us float64) {
		for set := range AllRungs + 1 {
			if !set.Has(r) {
				us += weights[set.count()] * (of(small(set)) - of(small(set|r)))
			}
		}
		return us
	}
}

// weights are the shares of all orders in which exactly these k savings come first and a
// certain one next: k!(5−k)!/6!.
var weights = [...]float64{1. / 6, 1. / 30, 1. / 60, 1. / 60, 1. / 30, 1. / 6}

// part is made of the times of several servers.
type part struct {
	key string
	us  func(reading) float64
}

// parts are the lead, what it is made of, and a rung that changes nothing.
func parts() []part {
	between := func(from, to ledger.Key) func(reading) float64 {
		return func(of reading) float64 { return of(from) - of(to) }
	}
	slowTwin, fastTwin := named(slow), named(fast)
	slowTwin.Twin, fastTwin.Twin = true, true
	out := []part{
		{"lead_us", between(named(NetHTTP), named(FastHTTP))},
		{"rest_high_us", between(named(NetHTTP), named(slow))}, {"rest_low_us", between(named(fast), named(FastHTTP))},
		{"nothing_us", func(of reading) float64 {
			return (of(named(slow)) - of(slowTwin) + of(fastTwin) - of(named(fast))) / 2
		}},
	}
	for _, r := range Ordered {
		out = append(out, part{r.key(), worth(r)})
	}
	return out
}

// divide keeps the parts of the lead with net/http, and with its twin what they are by the
// twins of all servers that have one. Without a lead there are none.
func divide(all []entry, runs []results.Run) {
	have := map[ledger.Key][]float64{} // what every round says, and last their median
	for i, e := range all {
		have[e.Key] = append(slices.Clone(runs[i].Blocks["cpu_us"]), runs[i].Extra["cpu_us"])
	}
	last := len(have[named(NetHTTP)]) - 1
	for i, e := range all {
		stack(e, runs[i].Extra, func(k ledger.Key) float64 { return have[k][last] })
		if e.Pattern != NetHTTP {
			continue
		}
		for _, p := range parts() {
			us := make([]float64, last+1)
			for round := range us {
				us[round] = p.us(func(k ledger.Key) float64 {
					k.Twin = k.Twin || e.Twin && slices.Contains(twice, k.Pattern)
					return have[k][round]
				})
			}
			if p.key == "lead_us" && us[last] <= 0 {
				break
			}
			ledger.Keep(&runs[i], p.key, us[:last])
			runs[i].Extra[p.key] = us[last] // so that they add up in the chart
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

// stack divides the time of a server into the parts of its bar.
func stack(e entry, x map[string]float64, of reading) {
	floor, low := of(named(Raw)), of(named(FastHTTP))
	x["floor_us"] = min(floor, x["cpu_us"])
	x["above_us"] = x["cpu_us"] - x["floor_us"]
	if e.Key == named(NetHTTP) { // the rest is the parts of the lead
		x["above_us"] = low - floor
	}
	beside, ok := map[string]string{addedToNone: slow, removedFromAll: fast, takenFromFast: FastHTTP}[e.Setup]
	if !ok {
		return
	}
	saving := x["cpu_us"] - of(named(beside))
	if e.Setup == addedToNone {
		saving = -saving // and it is not spent
	} else {
		x["above_us"] -= max(saving, 0)
	}
	x[e.about.key()] = saving
	if lead := of(named(NetHTTP)) - low; lead > 0 {
		x["share"] = 100 * saving / lead
	}
}
