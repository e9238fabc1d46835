package claims

import (
	"strings"
	"testing"

	judge "github.com/spillway-go/spillway/lab/oldjudge"
	"github.com/spillway-go/spillway/lab/results"
)

// The ledger is read by people and by tools: no field may be empty.
func TestEveryClaimIsComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range Families {
		for _, c := range f.Claims {
			if c.Title == "" || c.Published == "" || c.HoldsIf == "" || c.Source == "" || c.Question.Subject == "" || c.Question.Rule == (judge.Rule{}) {
				t.Errorf("%s is incomplete: %+v", c.ID, c)
			}
			if !strings.HasPrefix(c.ID, f.ID) || seen[c.ID] {
				t.Errorf("%q is not a unique id of family %s", c.ID, f.ID)
			}
			seen[c.ID] = true
			if found, ok := Find(c.ID); !ok || found.Title != c.Title {
				t.Errorf("Find(%q) = %v, %v", c.ID, found.Title, ok)
			}
		}
		for _, r := range f.Recommendations {
			if r.For == "" || r.Use == "" || len(r.RestsOn) == 0 || r.Source == "" {
				t.Errorf("recommendation is incomplete: %+v", r)
			}
		}
	}
	if _, ok := Find("Z9"); ok {
		t.Error("Z9 was found")
	}
}

func TestRecommendationStandsOnItsVerdicts(t *testing.T) {
	r := Recommendation{For: "x", Use: "y", RestsOn: []string{"H9/cleared", "H10"}}
	claim := func(id, setup string, v results.Verdict) results.OldClaim {
		return results.OldClaim{ID: id, Setup: setup, Verdict: v}
	}
	cleared := claim("H9/cleared", "for real", results.Holds)
	for _, c := range []struct {
		name    string
		decided []results.OldClaim
		want    results.Verdict
		cites   string
	}{
		{"stands", []results.OldClaim{cleared, claim("H10", "for real", results.Holds)}, results.Holds, "H10 (for real): holds"},
		{"falls in one set-up", []results.OldClaim{cleared, claim("H10", "as published", results.Fails), claim("H10", "for real", results.Holds)}, results.Fails, "H10 (as published): fails"},
		{"open", []results.OldClaim{cleared}, results.Inconclusive, "H10: not judged"},
	} {
		if got := r.Judge(c.decided); got.Verdict != c.want || !strings.Contains(got.Why, c.cites) {
			t.Errorf("%s: %s, %s; want %s citing %q", c.name, got.Verdict, got.Why, c.want, c.cites)
		}
	}
}
