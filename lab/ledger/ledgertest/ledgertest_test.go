package ledgertest

import (
	"strings"
	"testing"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/judge"
)

var speed = ledger.Extra("speed", "speed")

func of(pattern string, f ledger.Figure) ledger.Term {
	return ledger.Of(ledger.Key{Setup: "s", Load: "l", Pattern: pattern}, f)
}

// claim has one part for each case, which is about a ratio unless it is changed.
func claim(rule judge.Rule, cases ...ledger.Case) ledger.Claim {
	return ledger.Claim{ID: "T1", Parts: []ledger.Part{{Subject: "a/b", Unit: "x", Rule: rule, Spread: 0.03, Cases: ledger.Only(cases...)}}}
}

func TestRowsThatIgnoreTheirFiguresAreFound(t *testing.T) {
	rule := judge.AtLeast(2)
	zero := ledger.Figure{Name: "speed", Value: func(r *results.Run) float64 { return r.Extra["speed"] }}
	twice := claim(rule, ledger.Case{Setup: "s", Value: of("a", speed)})
	twice.Parts = append(twice.Parts, twice.Parts[0])
	for want, c := range map[string]ledger.Claim{
		"T1: no parts":                            {ID: "T1"},
		"T1/ (s): no figures were found":          claim(rule, ledger.Case{Setup: "s", Value: ledger.Const(3)}),
		"the speed of a run without figures is 0": claim(rule, ledger.Case{Setup: "s", Value: of("a", zero).Over(of("b", speed))}),
		"T1/: no set-up decides it":               claim(rule, ledger.Case{Setup: "s", Value: of("a", speed), Beside: true}),
		"T1/: two parts have this name":           twice,
	} {
		if got := strings.Join(complaints(ledger.Family{Claims: []ledger.Claim{c}}, nil), "\n"); !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
}
