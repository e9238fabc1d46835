package advice

import (
	"strings"
	"testing"

	"github.com/spillway-go/spillway/lab/results"
)

func part(claims ...results.Claim) []results.Results { return []results.Results{{Claims: claims}} }

func claim(id string, verdict results.Verdict, answers ...results.Answer) results.Claim {
	if len(answers) == 0 {
		answers = []results.Answer{{Verdict: verdict, Measured: 2, Low: 1, High: 3, Unit: "x", Repeats: 5}}
	}
	return results.Claim{ID: id, Verdict: verdict, Answers: answers}
}

func TestARuleIsWhatItsClaimsMakeOfIt(t *testing.T) {
	r := Rule{Question: "q?", Source: "s", Says: "Do.", Rests: []Basis{{"A", "Not so A."}, {"B/p", "Not so B."}}}
	parts := func(v results.Verdict) results.Claim {
		return claim("B", results.Fails, results.Answer{Part: "p", Verdict: v, Measured: 5, Low: 5, High: 5, Repeats: 5}, results.Answer{Part: "q", Verdict: results.Fails, Repeats: 5})
	}
	for name, test := range map[string]struct {
		claims  []results.Claim
		verdict string
		says    string
		cites   int
	}{
		"all hold":              {[]results.Claim{claim("A", results.Holds), parts(results.Holds)}, Supported, "Do.", 2},
		"one fails":             {[]results.Claim{claim("A", results.Holds), parts(results.Fails)}, Contradicted, "The source advises: Do. That did not hold here. Not so B.", 2},
		"one is open":           {[]results.Claim{claim("A", results.Inconclusive), parts(results.Holds)}, Undecided, "did not decide", 2},
		"one needs hardware":    {[]results.Claim{claim("A", results.NeedsHardware), parts(results.Holds)}, Undecided, "did not decide", 2},
		"one was not judged":    {[]results.Claim{claim("A", results.Holds)}, NotJudged, "judged here: B/p.", 1},
		"one fails, one is not": {[]results.Claim{claim("A", results.Fails)}, Contradicted, "Not so A.", 1},
		"nothing was judged":    {nil, NotJudged, "judged here: A, B/p.", 0},
		"a figure is missing":   {[]results.Claim{claim("A", results.Inconclusive, results.Answer{Verdict: results.Inconclusive, Missing: true}), parts(results.Holds)}, NotJudged, "judged here: A.", 1},
	} {
		t.Run(name, func(t *testing.T) {
			a := r.by(part(test.claims...))
			if a.Verdict != test.verdict || !strings.Contains(a.Text, test.says) || len(a.Cites) != test.cites || a.Question != "q?" || a.Source != "s" {
				t.Errorf("%+v, want %+v", a, test)
			}
		})
	}
	got := r.by(part(claim("A", results.Holds), parts(results.Fails))).Cites
	if got[0] != (results.Cite{Claim: "A", Verdict: "holds", Figure: "2x (1–3)"}) || got[1] != (results.Cite{Claim: "B/p", Verdict: "fails", Figure: "5"}) {
		t.Errorf("cited %+v", got)
	}
}

// Whatever was judged, and however, advice never cites more than that.
func TestNothingIsCitedThatWasNotJudged(t *testing.T) {
	for _, a := range Of(nil) {
		if a.Verdict != NotJudged || len(a.Cites) > 0 {
			t.Errorf("%+v", a)
		}
	}
	for _, a := range Of(part(claim("B/jobs", results.Holds), claim("H10", results.Fails))) {
		for _, c := range a.Cites {
			if c.Claim != "H10" {
				t.Errorf("%s cites %s", a.Question, c.Claim)
			}
		}
	}
}
