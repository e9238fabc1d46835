package report

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/chart"
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

func sessionPage(families []ledger.Family, of results.Session, runs map[string][]results.Run) (string, error) {
	w := &whole{Session: of}
	for _, res := range of.Parts {
		fam := ledger.Family{ID: res.Experiment, Title: "experiment " + res.Experiment}
		if i := slices.IndexFunc(families, func(f ledger.Family) bool { return f.ID == res.Experiment }); i >= 0 {
			fam = families[i]
		}
		s := newSession(fam, res, runs[res.Experiment])
		s.brief = true
		w.Experiments = append(w.Experiments, s)
	}
	return fitting(func(d detail) (string, error) {
		for _, s := range w.Experiments {
			s.detail = min(d, noRawRuns) // they are in the experiments' own reports
		}
		return render("session.html", w)
	})
}

// whole is everything that is shown of a session of several experiments.
type whole struct {
	results.Session
	Experiments []*session
}

// Facts are how the session was made.
func (w *whole) Facts() []fact {
	runs, disturbed := 0, 0
	for _, s := range w.Experiments {
		runs, disturbed = runs+len(s.runs), disturbed+len(s.disturbed())
	}
	return known(
		fact{"Machine", machine(w.Machine)},
		fact{"Revision", w.Revision},
		fact{"Runs", count(runs, "run") + " of " + count(len(w.Experiments), "experiment")},
		fact{"Made", made(w.Started, w.Ended)},
		fact{"Seed", fmt.Sprint(w.Seed)},
		fact{"How sure", howSure},
		fact{"Disturbed", pick(disturbed > 0, fmt.Sprintf("%d of %s, by other processes", disturbed, count(runs, "run")), "")},
		fact{"Command", command(w.Command)})
}

// Again is the command that does the session again.
func (w *whole) Again() []string { return again(w.Command, w.Seed) }

// claims are those of all experiments.
func (w *whole) claims() (all []results.Claim) {
	for _, res := range w.Parts {
		all = append(all, res.Claims...)
	}
	return all
}

// Chapters are the claims of all experiments.
func (w *whole) Chapters() []chapter {
	all := chapters(w.claims(), func(c results.Claim) card { return card{Claim: c} })
	all[0].Title = "Published claims"
	return all
}

// Omitted lists the experiments that were left out, and why.
func (w *whole) Omitted() (out []string) {
	for _, l := range w.LeftOut {
		out = append(out, l.Experiment+" was left out: "+strings.TrimSuffix(l.Why, "."))
	}
	return out
}

// Partial lists the experiments that miss runs, and why.
func (w *whole) Partial() (out []string) {
	for _, s := range w.Experiments {
		if p := s.Results.Partial; p != "" {
			out = append(out, s.Results.Experiment+": "+p)
		}
	}
	return out
}

// Summary is the claims of the experiment, a row each, with the answer that decided it.
func (s *session) Summary() []Table {
	const few = 7 // columns
	var lines []row
	for _, c := range s.Results.Claims {
		deciding, ok := c.Deciding()
		deciding.Verdict = c.Verdict
		a := answer{Answer: deciding}
		line := row{Anchor: c.ID, Cells: a.cells(c.ID+" "+sentence(c.Title), strings.Join(filled(a.Part, a.Setup), ", "))[:few], Marks: map[int]cellMark{2: {Class: kind(c.Verdict).Class}}}
		if !ok {
			line.Cells[5] = none // there is no rule
		}
		if a.measured() {
			low, high := a.reach()
			line.Strip = a.interval(chart.Around(append([]float64{a.Measured, low, high, a.Rule.Low, a.Rule.Top}, a.Published...)...)).Small()
		}
		lines = append(lines, line)
	}
	out := flat(lines, append([]string{"claim of " + s.Results.Experiment}, ofAnswer[1:few]...)...)
	for i := range out {
		out[i].Strips = "drawn"
	}
	return out
}

// Roomy reports whether there is room for more than the verdicts and the main drawings.
func (s *session) Roomy() bool { return s.detail > mainLoads }
