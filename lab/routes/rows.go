package routes

import (
	"fmt"
	"strings"

	"github.com/spillway-go/spillway/lab/judge"
	"github.com/spillway-go/spillway/lab/ledger"
)

const (
	manyCores = 16  // for a claim about contention
	moves     = 0.8 // by so much a gain, in per cent, moves between sessions
)

func of(setup, scenario, name string, f ledger.Figure) ledger.Term {
	return ledger.Of(ledger.Key{Setup: setup, Load: scenario, Pattern: name}, f)
}

// shape is a way to measure the published layer.
type shape struct{ setup, pooled, words string }

// shapes are compared. The first decides: nothing but the pool differs.
var shapes = []shape{
	{Net, Pooled, "net of the harness"}, {AsPublished, PooledShort, "with the published harness and all that differed"},
}

// took is the time for a request: on the clock where the claim is about contention.
func (s shape) took(scenario, name string) ledger.Term {
	f := processor
	if scenario == Parallel {
		f = clock
	}
	if s.setup == AsPublished {
		f.Key += total
	}
	return of(s.setup, scenario, name, f)
}

func percent(ratio ledger.Term) ledger.Term { return ratio.Minus(ledger.Const(1)).Times(100) }

// saves is a claim about what pooling saves, in per cent of the fresh build's time; with
// the sign −1, about what it costs. The first scenario decides.
func saves(sign float64, id, title, published string, value float64, rule judge.Rule, note string, scenarios ...string) ledger.Claim {
	subject := map[float64]string{1: "what pooling saves", -1: "what pooling costs"}[sign]
	return ledger.Claim{ID: id, Title: title, Published: published, Note: note, Parts: []ledger.Part{{
		Subject: subject, Unit: "%", Rule: rule, Spread: moves, Published: []float64{value}, Cases: func(e *ledger.Evidence) (out []ledger.Case) {
			for i, scenario := range scenarios {
				for k, s := range shapes {
					c := ledger.Case{Setup: s.words, Beside: i+k > 0, Value: percent(s.took(scenario, s.pooled).Over(s.took(scenario, Fresh))).Times(-sign)}
					if scenario == Untagged {
						c.Setup += ", answered 400 for want of form tags"
					}
					if procs := e.Param("gomaxprocs"); scenario == Parallel && procs < manyCores {
						c.Needs = fmt.Sprintf("The claim is about contention by at least %d processors, and GOMAXPROCS is %.0f.", manyCores, procs)
					}
					out = append(out, c)
				}
			}
			return out
		}}}}
}

// traffic is by how much fresh contexts take longer over the published mixture, averaged
// in both ways.
func traffic(*ledger.Evidence) (out []ledger.Case) {
	for i, s := range shapes {
		mean := func(figure func(scenario string) ledger.Term) ledger.Term {
			sum := ledger.Const(0)
			for _, scenario := range Scenarios {
				sum = sum.Plus(figure(scenario).Times(weights[scenario] / 100))
			}
			return sum
		}
		fresh := func(scenario string) ledger.Term { return s.took(scenario, Fresh) }
		pooled := func(scenario string) ledger.Term { return s.took(scenario, s.pooled) }
		ratio := func(scenario string) ledger.Term { return fresh(scenario).Over(pooled(scenario)) }
		out = append(out,
			ledger.Case{Setup: s.words + ", ratio of the mean times", Beside: i > 0, Value: percent(mean(fresh).Over(mean(pooled)))},
			ledger.Case{Setup: s.words + ", mean of the ratios", Beside: i > 0, Value: percent(mean(ratio))})
	}
	return out
}

func each(setups []string, value func(string) ledger.Term) func(*ledger.Evidence) []ledger.Case {
	var out []ledger.Case
	for _, s := range setups {
		out = append(out, ledger.Case{Setup: s, Value: value(s)})
	}
	return ledger.Only(out...)
}

func goal(id, title string, parts ...ledger.Part) ledger.Claim {
	return ledger.Claim{ID: id, Title: title, Goal: true, Parts: parts}
}

// duel compares one of ours with another, in a scenario.
type duel struct{ words, scenario, ours, theirs string }

// taxed are duels of typed routes with the same by hand.
var taxed = func() (out []duel) {
	for _, scenario := range []string{JSON, Form, Large, Get} {
		out = append(out, duel{scenario + " on net/http's mux", scenario, Spillway, Mux}, duel{scenario + " on gin", scenario, GinTyped, Gin})
	}
	return out
}()

// byHand are duels of a typed GET with each hand-written one: who is as fast as all of
// them is as fast as the best.
var byHand = func() (out []duel) {
	for _, name := range []string{Mux, MuxValidator, Chi, Gin} {
		out = append(out, duel{"beside " + name, Get, Spillway, name})
	}
	return out
}()

// builds is a case for every duel in every build. The one with json v2 decides.
func builds(duels []duel, value func(setup string, d duel) ledger.Term) func(*ledger.Evidence) []ledger.Case {
	return func(e *ledger.Evidence) (out []ledger.Case) {
		ran := func(build string) bool {
			return len(e.Keys(func(k ledger.Key) bool { return k.Setup == contestOf+build })) > 0
		}
		for _, build := range []string{JSONv2, StdJSON} {
			for _, d := range duels {
				c := ledger.Case{Setup: strings.TrimPrefix(d.words+", "+build, ", "), Beside: build == StdJSON, Value: value(contestOf+build, d)}
				if build == JSONv2 && ran(StdJSON) && !ran(JSONv2) {
					c.Open = "The contestants were not run in a build with json v2: leave out --one-build."
				}
				out = append(out, c)
			}
		}
		return out
	}
}

func takes(title, subject string, bound float64, duels ...duel) ledger.Part {
	return ledger.Part{ID: "time", Title: title, Subject: subject, Unit: "x", Rule: judge.AtMost(bound), Spread: 0.03,
		Cases: builds(duels, func(setup string, d duel) ledger.Term {
			return of(setup, d.scenario, d.ours, processor).Over(of(setup, d.scenario, d.theirs, processor))
		})}
}

func atMost(n float64, scenario string) ledger.Part {
	return ledger.Part{ID: "allocs", Title: fmt.Sprintf("it needs at most %.0f allocations", n), Subject: "allocations of a " + scenario, Kind: judge.Never, Rule: judge.AtMost(n),
		Cases: builds([]duel{{scenario: scenario}}, func(setup string, d duel) ledger.Term { return of(setup, d.scenario, Spillway, whole) })}
}

func never(id, title string, f ledger.Figure) ledger.Part {
	return ledger.Part{ID: id, Title: title, Subject: f.Name + " in " + lateLoad, Kind: judge.Never, Rule: judge.Exactly(0),
		Cases: each([]string{Spillway, GinTyped}, func(name string) ledger.Term { return ledger.Of(lateKey(name), f) })}
}
