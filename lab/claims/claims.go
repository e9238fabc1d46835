// Package claims is the ledger of published claims as data and rules: each claim,
// its source, its figures and the rule that decides it. It does not measure: an
// experiment turns its runs into one value or pair for each repeat, and the claim
// returns a verdict.
//
//	claims.H1.Judge("as published", judge.Input{Pairs: naiveAndPool, Seed: seed})
//
// There is one file for each family of claims. Ids are stable; a claim with several
// parts is several claims ("H2/refused", "H2/goodput"), because parts that disagree
// must not be averaged into one verdict.
//
// A published absolute time or rate depends on the machine it was taken on.
// Where the set-up does not fix it, the claim is restated as a ratio or a law,
// and the published figure stays beside ours.
package claims

import (
	"fmt"
	"strings"

	judge "github.com/spillway-go/spillway/lab/oldjudge"
	"github.com/spillway-go/spillway/lab/results"
)

// Claim is one decidable part of a published claim.
type Claim struct {
	ID        string
	Title     string         // the claim in one line
	Published string         // the source's figures
	HoldsIf   string         // the rule in words
	Question  judge.Question // the rule, and what the measured figure is
	Source    string         // its publisher
	Note      string         // a note about the published method; may be empty
}

// Judge decides the claim for one set-up ("as published", "for real"). The comment
// of each claim says what its input values are; shares are in per cent.
func (c Claim) Judge(setup string, in judge.Input) results.OldClaim {
	ans := judge.Judge(c.Question, in)
	return results.OldClaim{
		ID:         c.ID,
		Title:      c.Title,
		Setup:      setup,
		Verdict:    ans.Verdict,
		Measured:   ans.Measured,
		Low:        ans.Low,
		High:       ans.High,
		Unit:       c.Question.Unit,
		Published:  c.Published,
		Rule:       c.HoldsIf,
		Why:        ans.Why,
		Runs:       ans.Runs,
		NoiseFloor: ans.NoiseFloor,
		MoreRuns:   ans.MoreRuns,
		Source:     c.Source,
	}
}

// Recommendation is advice of a source, with the claims it rests on.
type Recommendation struct {
	For     string   // the situation: "batch jobs"
	Use     string   // what the source advises
	RestsOn []string // ids of claims
	Source  string
}

// Family is the claims of one source.
type Family struct {
	ID              string
	Title           string
	Source          string
	Claims          []Claim
	Recommendations []Recommendation
}

// Families lists every family that is judged, in the order of the ledger.
var Families = []Family{H, Pools}

// Find returns the claim of that id.
func Find(id string) (Claim, bool) {
	for _, f := range Families {
		for _, c := range f.Claims {
			if c.ID == id {
				return c, true
			}
		}
	}
	return Claim{}, false
}

// Advice is a recommendation judged by our own verdicts.
type Advice struct {
	Recommendation
	Verdict results.Verdict // Holds: everything it rests on holds
	Why     string          // each verdict it rests on
}

// Judge judges the recommendation: it holds if every claim it rests on holds in every
// set-up, and fails with any claim that fails. A claim that was not judged leaves it
// open.
func (r Recommendation) Judge(decided []results.OldClaim) Advice {
	var verdicts []results.Verdict
	var cited []string
	for _, id := range r.RestsOn {
		known := false
		for _, c := range decided {
			if c.ID == id {
				known = true
				verdicts = append(verdicts, c.Verdict)
				cited = append(cited, fmt.Sprintf("%s (%s): %s", id, c.Setup, c.Verdict))
			}
		}
		if !known {
			verdicts = append(verdicts, results.Inconclusive)
			cited = append(cited, id+": not judged")
		}
	}
	return Advice{Recommendation: r, Verdict: judge.All(verdicts...), Why: strings.Join(cited, "; ") + "."}
}
