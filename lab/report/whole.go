package report

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

// WriteSession puts the report of several experiments into dir, atomically: all verdicts
// and what they advise at the top, then a section for each experiment. Each has a report of
// its own, in the folder that is named like it. Runs are those of an experiment by its id.
func WriteSession(dir string, families []ledger.Family, session results.Session, runs map[string][]results.Run) error {
	text, err := sessionPage(families, session, runs)
	if err != nil {
		return fmt.Errorf("the report of the session cannot be made: %w", err)
	}
	return results.WriteFile(filepath.Join(dir, results.ReportFile), []byte(text))
}

// whole is a session of several experiments: all of their claims and runs, and each of them.
type whole struct {
	*session
	Of          results.Session
	Experiments []*session
}

func sessionPage(families []ledger.Family, of results.Session, runs map[string][]results.Run) (string, error) {
	w := newWhole(families, of, runs)
	return fitting("session.html", w, w.Experiments...)
}

func newWhole(families []ledger.Family, of results.Session, runs map[string][]results.Run) *whole {
	all := results.Results{Machine: of.Machine, Revision: of.Revision, Command: of.Command, Seed: of.Seed, Started: of.Started, Ended: of.Ended}
	w := &whole{&session{}, of, nil}
	for _, res := range of.Parts {
		fam := ledger.Family{ID: res.Experiment, Title: "experiment " + res.Experiment}
		if i := slices.IndexFunc(families, func(f ledger.Family) bool { return f.ID == res.Experiment }); i >= 0 {
			fam = families[i]
		}
		s := newSession(fam, res, runs[res.Experiment])
		all.Claims, w.runs, w.Experiments = append(all.Claims, res.Claims...), append(w.runs, s.runs...), append(w.Experiments, s)
	}
	w.Results = all
	return w
}

// last is the last word on every claim.
func (w *whole) last() Table {
	var lines []row
	for _, c := range w.Results.Claims {
		a, _ := c.Deciding()
		lines = append(lines, row{Cells: []string{
			c.ID + pick(a.Part == "" || a.Part == c.ID, "", " "+a.Part), string(c.Verdict), cmp.Or(a.Figure(), "missing"),
			pick(c.Goal, "a goal of ours: "+a.Rule.Words(a.Unit), cmp.Or(a.Said(), "no figure")),
		}})
	}
	return Table{[]string{"claim", "verdict", "measured", "published"}, lines}
}

// Summary is the claims of the experiment, a row each, with the answer that decided it.
func (s *session) Summary() []Table {
	var lines []row
	for _, c := range s.Results.Claims {
		deciding, ok := c.Deciding()
		deciding.Verdict = c.Verdict
		of := part{Answers: []answer{{Answer: deciding}}}
		of.draw()
		a := of.Answers[0]
		line := row{Marks: map[int]mark{0: {Link: "#claim-" + c.ID}, 2: {Class: kind(c.Verdict).Class}}, Cells: []string{
			c.ID + " " + sentence(c.Title), strings.Join(filled(a.Part, a.Setup), ", "), kind(c.Verdict).Mark + " " + string(c.Verdict),
			cmp.Or(a.Figure(), none), pick(ok, a.Rule.Words(a.Unit), none), cmp.Or(a.Said(), none), "",
		}}
		if a.Chart != nil {
			line.Marks[6] = mark{Class: "spread", Drawing: a.Chart.Small()}
		}
		if s.detail == verdictsOnly { // it is not said elsewhere on the page
			line.ID, line.Note, line.Marks[0] = "claim-"+c.ID, sentence(c.Why), mark{}
		}
		lines = append(lines, line)
	}
	return tableOf(lines, "claim of "+s.Results.Experiment, "set-up", "verdict", "measured", "rule", "published", "drawn")
}

// Full reports whether there is room for more than the verdicts.
func (s *session) Full() bool { return s.detail > verdictsOnly }
