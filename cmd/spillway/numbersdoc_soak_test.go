//go:build soak

package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/internal/pages"
	"github.com/spillway-go/spillway/load/judge"
)

// Passing means that the judge is as sure as docs/lab/verdicts.md says.
func TestSoakHowSureTheJudgeIs(t *testing.T) {
	code, stdout, stderr := command(t, "lab", "selftest", "--json")
	var out struct{ Judge judge.Report }
	if err := json.Unmarshal([]byte(stdout), &out); code != 0 || err != nil {
		t.Fatalf("exit code %d, %v, %s", code, err, stderr)
	}
	share := func(test string, repeats ...int) string {
		for _, r := range out.Judge.Rows {
			for _, n := range repeats {
				if r.Test == test && r.Repeats == n {
					return fmt.Sprintf(" %.1f %% |", 100*r.Share)
				}
			}
		}
		return " |"
	}
	for _, row := range [][2]string{
		{"the interval contains the truth", "normal: the interval contains the median, 0 disturbed"},
		{"an effect of 1 deviation is found", "normal: an effect of 1 deviations is found"},
		{"of 1.5 deviations", "normal: an effect of 1.5 deviations is found"},
		{"of 2 deviations", "normal: an effect of 2 deviations is found"},
		{"of 3 deviations", "normal: an effect of 3 deviations is found"},
		{"wrong at a bound, each repeat follows the last with 0.5", "normal, each repeat follows the last with 0.5: wrong at a bound"},
		{"the same without an A/A comparison", "normal, each repeat follows the last with 0.5: wrong at a bound, no A/A"},
		{"the same with 0.8", "normal, each repeat follows the last with 0.8: wrong at a bound, no A/A"},
		{"an instrument with a bias of two deviations shows an effect", "normal: an instrument with a bias of two deviations shows an effect"},
		{"a claim of six parts at their bounds fails", "normal: the same without Holm"},
		{"the same corrected by Holm, as claims ask for", "normal: a claim of six parts at their bounds fails, by Holm"},
	} {
		cells := share(row[1], 5) + share(row[1], 9, 10) + share(row[1], 20) + share(row[1], 50)
		pages.Says(t, "docs/lab/verdicts.md", "| "+row[0]+" |"+cells)
	}
	const settled = "any noise: settled by as many more runs as advised"
	pages.Says(t, "docs/lab/verdicts.md", "As many more repeats as advised settle"+strings.TrimSuffix(share(settled, 5), " |")+" of the open questions")
}
