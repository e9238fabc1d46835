package report

import (
	"strings"

	"github.com/spillway-go/spillway/lab/results"
)

// recommendation is a published advice, weighed against what was measured.
type recommendation struct {
	Who, Advice string
	Answer      string // what the measurement says to it
	Class       string // of the answer
	Evidence    []evidence
	Missing     []string // claims that would bear on it and were not measured
}

// evidence is one claim that bears on an advice, in the words that apply.
type evidence struct {
	Claim     results.Claim
	Direction int // 1 for the advice, -1 against it, 0 neither
	Text      string
}

func (e evidence) Class() string { return [...]string{"against", "open", "for"}[e.Direction+1] }
func (e evidence) Sign() string  { return [...]string{"against", "open", "for"}[e.Direction+1] }

// advice lists, for a published recommendation, the claims that bear on it.
type advice struct {
	who, text string
	looks     []look
}

// look reads one claim: which way it points, and why.
type look struct {
	id   string
	read func(results.Claim) (int, string)
}

// adviceOf by experiment.
var adviceOf = map[string][]advice{
	"H": {
		{"Patient-facing and real-time monitoring", "use the optimized pool", []look{
			{"H10", decides("pooled responses cut the tail or the collection", "pooled responses cut neither the tail nor the collection beyond the noise")},
			{"H9", decides("cleared and correctly owned reuse leaks nothing", "responses were not safe to reuse")},
			{"H2/refused", overHalf(-1, "most requests of patients are refused at high load", "most requests are served at high load")},
			{"H1", aboveOne(-1, "at low load the goroutine per request answers more than the small pool", "at low load the small pool answers as much")},
		}},
		{"Internal tools", "use the worker pool", []look{
			{"H11", decides("what the pool uses can be calculated in advance", "what the pool uses cannot be calculated as stated")},
			{"H1", aboveOne(-1, "at low load twenty workers answer only a part of what could be answered", "at low load twenty workers answer as much")},
		}},
		{"Batch processing", "use the worker pool with a larger queue", []look{
			{"H3/refused", overHalf(1, "a queue of 100 refuses most of a sustained load, so the work needs room to wait", "a queue of 100 is room enough")},
			{"H5", decides("the rule of thumb finds a good size", "the rule of thumb does not find a good size")},
		}},
		{"Prototypes, scripts, tools with known bounds", "use the naive pattern only there", []look{
			{"H6", decides("without a bound the database's connections run out", "without a bound the database held")},
			{"H7", decides("without a bound a slow query piles up goroutines", "a slow query did not pile up goroutines")},
			{"H8", decides("without a bound one service starves its neighbours", "neighbours were not starved")},
			{"H1", aboveOne(-1, "at low load the naive pattern is well ahead of a pool this small", "at low load the naive pattern has no lead")},
		}},
	},
}

// decides reads the verdict itself.
func decides(holds, fails string) func(results.Claim) (int, string) {
	return func(c results.Claim) (int, string) {
		switch c.Verdict {
		case results.Holds:
			return 1, holds
		case results.Fails:
			return -1, fails
		}
		return 0, "undecided"
	}
}

// aboveOne reads a ratio: what it says does not hang on the claim's own range.
func aboveOne(direction int, above, below string) func(results.Claim) (int, string) {
	return threshold(1, direction, above, below)
}

// overHalf reads a share in per cent.
func overHalf(direction int, above, below string) func(results.Claim) (int, string) {
	return threshold(50, direction, above, below)
}

func threshold(x float64, direction int, above, below string) func(results.Claim) (int, string) {
	return func(c results.Claim) (int, string) {
		switch {
		case c.Runs == 0 || c.Low == 0 && c.High == 0:
			return 0, "undecided"
		case c.Low > x:
			return direction, above
		case c.High < x:
			return -direction, below
		}
		return 0, "undecided"
	}
}

// recommend weighs the published advice of an experiment against its claims.
// Where a claim was decided for real, that counts; the published set-up only
// where nothing else was measured.
func recommend(experiment string, claims []results.Claim) []recommendation {
	var out []recommendation
	for _, a := range adviceOf[strings.ToUpper(experiment)] {
		r := recommendation{Who: a.who, Advice: a.text}
		for _, l := range a.looks {
			found := bearing(claims, l.id)
			if len(found) == 0 {
				r.Missing = append(r.Missing, l.id)
			}
			for _, c := range found {
				direction, text := l.read(c)
				r.Evidence = append(r.Evidence, evidence{c, direction, text})
			}
		}
		r.Answer, r.Class = weigh(r.Evidence)
		out = append(out, r)
	}
	return out
}

// bearing returns the claims with that id or parts of it, of the most telling
// set-up that has any.
func bearing(claims []results.Claim, id string) []results.Claim {
	var found []results.Claim
	for _, c := range claims {
		if c.ID == id || strings.HasPrefix(c.ID, id+"/") {
			found = append(found, c)
		}
	}
	var real []results.Claim
	for _, c := range found {
		if c.Setup == "for real" {
			real = append(real, c)
		}
	}
	if len(real) > 0 {
		return real
	}
	return found
}

func weigh(all []evidence) (answer, class string) {
	pro, con := 0, 0
	for _, e := range all {
		switch {
		case e.Direction > 0:
			pro++
		case e.Direction < 0:
			con++
		}
	}
	switch {
	case pro > 0 && con == 0:
		return "Our measurement supports this.", "for"
	case pro == 0 && con > 0:
		return "Our measurement does not support this.", "against"
	case pro > 0:
		return "Our measurement supports this in part.", "open"
	}
	return "Our measurement does not decide this.", "open"
}
