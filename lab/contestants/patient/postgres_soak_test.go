//go:build soak

package main

import (
	"testing"

	"github.com/spillway-go/spillway/internal/soak"
	plan "github.com/spillway-go/spillway/lab/patterns"
)

// Passing means that every scenario on a real database has the figures that its claims are
// judged by, and that no bounded contestant is refused a connection.
func TestSoakTheScenariosOnARealDatabase(t *testing.T) {
	runs := onRealDatabase(t, 12, "crowd", "stall", "neighbours")
	for _, r := range runs {
		figures := []string{"refused_connections", "without_connection"}
		switch r.Setup {
		case plan.Neighbours:
			figures = append(figures, "neighbour_good")
		case plan.Lock:
			figures = append(figures, "own_good", "critical_share")
		default:
			figures = append(figures, "fair_good", "own_good", "critical_share")
		}
		missing := 0.0
		for _, f := range figures {
			if _, ok := r.Extra[f]; !ok {
				t.Errorf("%s, %s: no figure %s: %v", r.Setup, r.Pattern, f, r.Extra)
				missing++
			}
		}
		soak.AtMost(t, r.Setup+", "+r.Pattern+": figures that are missing", missing, 0, "", "a second is enough for each")
		if bounded := r.Pattern == plan.Pooled || r.Pattern == plan.Adaptive || r.Pattern == plan.Told; bounded && r.Extra["refused_connections"] != 0 {
			t.Errorf("%s, %s: %v connections were refused", r.Setup, r.Pattern, r.Extra["refused_connections"])
		}
	}
}

// Passing means that a limiter without a number in front of databases has its figures
// before and after the change.
func TestSoakALimiterInFrontOfDatabasesHasItsFigures(t *testing.T) {
	runs, missing := inFrontOfDatabases(t, .3)
	for _, m := range missing {
		t.Errorf("no answer for %s", m)
	}
	for _, r := range runs {
		for _, f := range []string{"before", "after", "p99_before", "p99_after", "limit_before", "limit_after"} {
			soak.AtLeast(t, r.Setup+", "+r.Pattern+": "+f, r.Extra[f], 0.001, "", "a figure that is zero was not measured")
		}
	}
}
