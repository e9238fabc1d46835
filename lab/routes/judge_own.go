package routes

import (
	"fmt"
	"math"

	"github.com/spillway-go/spillway/lab/claims"
	judge "github.com/spillway-go/spillway/lab/oldjudge"
	"github.com/spillway-go/spillway/lab/results"
)

// byHandOnly are the hand-written contestants that a GET is compared with.
var byHandOnly = []string{Mux, MuxValidator, Chi, Gin}

// taxed are pairs of a typed contestant and the same by hand.
var taxed = []struct{ typed, byHand, words string }{
	{Spillway, Mux, "on net/http's mux"}, {GinTyped, Gin, "on gin"},
}

func cellIn(build, scenario, name string) cell {
	return cell{Setup: contestOf + build, Load: scenario, Pattern: name}
}

// own judges what this project promises.
func (e evidence) own() []results.OldClaim {
	out := []results.OldClaim{
		e.over(claims.RouteCreate, JSON, Spillway, MuxValidator, ""), e.allocations(claims.RouteCreateAllocs, JSON),
		e.over(claims.RouteGet, Get, Spillway, e.bestByHand(JSONv2), ""), e.allocations(claims.RouteGetAllocs, Get),
		e.over(claims.RouteForm, Form, Spillway, MuxValidator, ""), e.allocations(claims.RouteFormAllocs, Form),
	}
	for _, t := range taxed {
		for _, scenario := range []string{JSON, Form, Large, Get} {
			out = append(out, e.over(claims.RouteTax, scenario, t.typed, t.byHand, ", "+t.words), e.further(scenario, t.typed, t.byHand, ", "+t.words))
		}
	}
	return out
}

// bestByHand is the hand-written contestant with the shortest mean time for a
// GET, so that the noise of each repeat does not change the choice.
func (e evidence) bestByHand(build string) string {
	best := Mux
	for _, name := range byHandOnly {
		if k := cellIn(build, Get, name); len(e.Of(k)) > 0 && e.mean(k, extra("cpu_ns")) < e.mean(cellIn(build, Get, best), extra("cpu_ns")) {
			best = name
		}
	}
	return best
}

// missing says what to run if the build that counts was not.
func (e evidence) missing(keys ...cell) string {
	for _, r := range e.Runs {
		if r.Setup == contestOf+JSONv2 {
			return e.Missing(keys...)
		}
	}
	return "The contestants were not run in a build with json v2: leave out --one-build."
}

// over judges the processor time of one contestant over another's, and reports the same
// for the build with encoding/json.
func (e evidence) over(claim claims.Claim, scenario, ours, theirs, words string) results.OldClaim {
	a, b := cellIn(JSONv2, scenario, ours), cellIn(JSONv2, scenario, theirs)
	in := e.Ratios(a, b, "cpu_ns")
	in.Missing = e.missing(a, b)
	c := claim.Judge(scenario+words, in)
	for _, build := range []string{JSONv2, StdJSON} {
		us, them := e.mean(cellIn(build, scenario, ours), extra("cpu_ns")), e.mean(cellIn(build, scenario, theirs), extra("cpu_ns"))
		if us > 0 && them > 0 {
			c.Why += fmt.Sprintf(" With %s: %s %.0f ns, %s %.0f ns, %.2fx.", build, ours, us, theirs, them, us/them)
		}
	}
	return c
}

// whole is the allocations of a request without the fractions from start-up and emptied
// pools.
func whole(r results.Run) float64 { return math.Round(r.Extra["allocs"]) }

func (e evidence) allocations(claim claims.Claim, scenario string) results.OldClaim {
	us := cellIn(JSONv2, scenario, Spillway)
	in := e.Values(us, whole)
	in.Missing = e.missing(us)
	c := claim.Judge(scenario, in)
	if std := cellIn(StdJSON, scenario, Spillway); e.Missing(std) == "" {
		c.Why += fmt.Sprintf(" With %s %.0f.", StdJSON, e.mean(std, whole))
	}
	return c
}

// further judges allocations beyond those of the same by hand.
func (e evidence) further(scenario, typed, byHand, words string) results.OldClaim {
	a, b := cellIn(JSONv2, scenario, typed), cellIn(JSONv2, scenario, byHand)
	in := judge.Input{Seed: e.Seed, Missing: e.missing(a, b)}
	for _, p := range e.Pairs(a, b, whole).Pairs {
		in.Values = append(in.Values, p.A-p.B)
	}
	c := claims.RouteTaxAllocs.Judge(scenario+words, in)
	if in.Missing == "" {
		c.Why += fmt.Sprintf(" %.0f typed, %.0f by hand.", e.mean(a, whole), e.mean(b, whole))
	}
	return c
}
