package ledger

import (
	"slices"

	"github.com/spillway-go/spillway/load/judge"
)

// By is the cell of another contestant, under the same load in the same set-up.
func (k Key) By(contestant string) Key {
	k.Pattern = contestant
	return k
}

// AndTwin is the cell, and its twin if it has one.
func (k Key) AndTwin(has bool) []Key {
	if twin := k; has {
		twin.Twin = true
		return []Key{k, twin}
	}
	return []Key{k}
}

// All is a figure of every cell for which ok is true.
func (e *Evidence) All(f Figure, ok func(Key) bool) (out []Term) {
	for _, k := range e.Keys(ok) {
		out = append(out, Of(k, f))
	}
	return out
}

// One is the case of a part with one set-up.
func One(setup string, value Term) func(*Evidence) []Case {
	return Only(Case{Setup: setup, Value: value})
}

// Each is a case for each set-up. Those that are named last stand beside.
func Each(setups []string, value func(setup string) Term, beside ...string) func(*Evidence) []Case {
	var out []Case
	for _, s := range setups {
		out = append(out, Case{Setup: s, Value: value(s), Beside: slices.Contains(beside, s)})
	}
	return Only(out...)
}

// AtMost is a part about a ratio of times, or of what was used, which moves by 3 % between
// sessions.
func AtMost(bound float64, id, title, subject string, cases func(*Evidence) []Case) Part {
	return Part{ID: id, Title: title, Subject: subject, Unit: "x", Rule: judge.AtMost(bound), Spread: .03, Cases: cases}
}

// Keys are the cells of contestants under one load, in their order. One that is named again is a
// twin.
func Keys(setup, load string, contestants []string) (out []Key) {
	for i, name := range contestants {
		out = append(out, Key{Setup: setup, Load: load, Pattern: name, Twin: slices.Contains(contestants[:i], name)})
	}
	return out
}
