//go:build soak

package main

import (
	"testing"

	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/lab/overload"
)

// Passing means that every contestant answers for a second, and commits what it answered
// if it audits.
func TestSoakEveryContestantAnswersAndCommits(t *testing.T) {
	for _, r := range shortRuns(t, .3) {
		soak.AtLeast(t, r.Pattern+": answers", r.Extra["answered"], 1, "/s", "without an answer nothing was measured")
		if r.Pattern != overload.Unaudited {
			soak.AtLeast(t, r.Pattern+": commits", r.Extra["commits"], 1, "", "an answer waits for the commit of its record")
			soak.AtMost(t, r.Pattern+": answers without a record", r.Extra["unrecorded"], 0, "", "every answer has a record")
		}
	}
}
