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
				us += weight(set.count()) * (of(small(set)) - of(small(set|r)))
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

// between is what the second of two servers needs less than the first.
func between(from, to ledger.Key) func(reading) float64 {
	return func(of reading) float64 { return of(from) - of(to) }
}

// nothing is a rung that changes nothing, at both ends of the small server.
func nothing(of reading) float64 {
	a, b := named(slow), named(fast)
	a.Twin, b.Twin = true, true
	return (of(named(slow)) - of(a) + of(b) - of(named(fast))) / 2
}

// part is made of the times of several servers and kept with those of net/http.
type part struct {
	key string
	us  func(reading) float64
}

// parts are what the lead is made of. All but the lead itself and the last one add up to it.
func parts() []part {
	out := []part{
		{"lead_us", between(named(NetHTTP), named(FastHTTP))},
		{"rest_high_us", between(named(NetHTTP), named(slow))},
		{"rest_low_us", between(named(fast), named(FastHTTP))},
	}
	for _, r := range Ordered {
		out = append(out, part{r.key(), worth(r)})
	}
	return append(out, part{"nothing_us", nothing})
}

// divide keeps the parts of the lead with net/http, and in its twin what they are by the
// twins of all servers that have one. Without a lead there are none.
func divide(all []entry, runs []results.Run) {
	have := map[ledger.Key]*results.Run{}
	for i, e := range all {
		have[e.Key] = &runs[i]
	}
	for _, twin := range []bool{false, true} {
		of := func(k ledger.Key) *results.Run {
			k.Twin = k.Twin || twin && slices.Contains(twice, k.Pattern)
			return have[k]
		}
		in := func(round int) reading { return func(k ledger.Key) float64 { return of(k).Blocks["cpu_us"][round] } }
		median := func(k ledger.Key) float64 { return of(k).Extra["cpu_us"] }
		net := of(named(NetHTTP))
		for _, p := range parts() {
			us := make([]float64, len(net.Blocks["cpu_us"]))
			for round := range us {
				us[round] = p.us(in(round))
			}
			if p.key == "lead_us" && !(ledger.Median(us) > 0) {
				break
			}
			ledger.Keep(net, p.key, us)
			net.Extra[p.key] = p.us(median) // so that they add up in the chart
		}
		if widest := widest(net); !math.IsNaN(widest) {
			net.Extra["widest"] = widest
		}
	}
}

// widest is half of the interval of the share that is known least, in per cent of the
// lead, over the rounds; NaN if these are too few.
func widest(net *results.Run) float64 {
	var halves []float64
	for _, r := range Ordered {
		shares := slices.Clone(net.Blocks[r.key()])
		for i := range shares {
			shares[i] *= 100 / net.Blocks["lead_us"][i]
		}
		over := judge.Judge(judge.Question{}, judge.Input{Values: shares})
		if math.IsNaN(over.High) {
			return over.High
		}
		halves = append(halves, (over.High-over.Low)/2)
	}
	return slices.Max(halves)
}

// stack divides the time of each server into the parts of its bar.
func stack(all []entry, runs []results.Run) {
	have := map[ledger.Key]float64{}
	for i, e := range all {
		have[e.Key] = runs[i].Extra["cpu_us"]
	}
	of := func(k ledger.Key) float64 { return have[k] }
	floor, low, lead := of(named(Raw)), of(named(FastHTTP)), of(named(NetHTTP))-of(named(FastHTTP))
	for i, e := range all {
		x := runs[i].Extra
		x["floor_us"] = min(floor, x["cpu_us"])
		x["above_us"] = x["cpu_us"] - x["floor_us"]
		var saving float64
		switch {
		case e.Key == named(NetHTTP):
			x["above_us"] = low - floor
			continue
		case e.Setup == addedToNone:
			saving = of(named(slow)) - of(e.Key)
		case e.Setup == removedFromAll:
			saving = of(e.Key) - of(named(fast))
		case e.Setup == takenFromFast:
			saving = of(e.Key) - low
		default:
			continue
		}
		x[e.about.key()] = saving
		if lead > 0 {
			x["share"] = 100 * saving / lead
		}
		if e.Setup != addedToNone { // there it is not spent
			x["above_us"] -= max(saving, 0)
		}
	}
}
