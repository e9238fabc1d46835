package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/pages"
	"github.com/spillway-go/spillway/lab/advice"
	"github.com/spillway-go/spillway/lab/results"
)

// The table in docs/lab/choosing.md is made of the rules and of the verdicts in verdicts.json.
func TestTheTableInChoosing(t *testing.T) {
	parts := keptVerdicts(t)
	session := parts[0]
	pages.Says(t, "docs/lab/choosing.md", fmt.Sprintf("%s, %s, %s, %s/%s, %s.", session.Started.Format(time.DateOnly), session.Revision,
		session.Machine.CPU, session.Machine.OS, session.Machine.Arch, session.Machine.Go))
	between(t, "choosing.md", "advice", choosing(parts))
}

// choosing is the table: what is advised, and what became of it.
func choosing(parts []results.Results) string {
	var b strings.Builder
	b.WriteString("| question | advice | on two processors |\n|---|---|---|\n")
	for i, a := range advice.Of(parts) {
		var cited []string
		for _, c := range a.Cites {
			figure := ""
			if c.Figure != "" {
				figure = " " + c.Figure
			}
			cited = append(cited, fmt.Sprintf("%s %s%s", c.Claim, c.Verdict, figure))
		}
		who := "ours"
		if a.Source != "" {
			who = a.Source
		}
		found := a.Verdict
		if len(cited) > 0 {
			found += ": " + strings.Join(cited, "; ")
		}
		said := advice.Rules[i].Says
		if a.Verdict == advice.Contradicted {
			_, instead, _ := strings.Cut(a.Text, " That did not hold here. ")
			said += " **Here not:** " + instead
		}
		fmt.Fprintf(&b, "| %s | %s *(%s)* | %s |\n", a.Question, said, who, found)
	}
	return b.String()
}
