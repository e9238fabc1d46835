//go:build soak

package main

import (
	"strings"
	"testing"

	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/lab/overload"
)

// Passing means that a session of a second answers the claims without an error, and that
// the time line has the limits of those that have one.
func TestSoakASessionOfOverloadHasItsFigures(t *testing.T) {
	res, runs := smallOverload(t, overload.Experiment, "1.5x", nil, false, .2, 8)
	for _, c := range res.Claims {
		for _, a := range c.Answers {
			if a.Missing && a.Setup == "at 1.5x" && !strings.Contains(a.Why, "is missing in repeat") {
				t.Errorf("%s: %s", c.ID, a.Why)
			}
		}
	}
	errors, limits := uint64(0), map[string]int{}
	for _, r := range runs {
		errors += r.Of("error").Count
		for _, p := range r.Series {
			limits[r.Pattern] += p.Limit
		}
	}
	soak.AtMost(t, "errors", float64(errors), 0, "", "every request is answered, refused or too late")
	for _, name := range []string{overload.Spillway, overload.Failsafe} {
		soak.AtLeast(t, name+": the sum of the limits", float64(limits[name]), 1, "", "a second has ten steps, and a limit is at least 1")
	}
}
