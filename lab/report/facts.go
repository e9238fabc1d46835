package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/lab/results"
)

// fact is one about the session.
type fact struct{ Name, Value string }

// Facts are how the session was made.
func (s *session) Facts() []fact {
	res, twins, disturbed := s.Results, 0, stat{}
	for _, r := range s.runs {
		if r.Twin {
			twins++
		}
		if r.Disturbed > 0 {
			disturbed = append(disturbed, r.Disturbed)
		}
	}
	made := fmt.Sprintf("%s in %s", count(len(s.runs), "run"), count(res.Repeats, "repeat")) + pick(twins > 0, "; "+count(twins, "twin")+" to measure noise", "")
	all := []fact{{"Machine", machine(res.Machine)}, {"Revision", res.Revision}, {"Runs", made}}
	if !res.Started.IsZero() {
		all = append(all, fact{"Made", fmt.Sprintf("%s, in %v", res.Started.UTC().Format("2 January 2006, 15:04 MST"), max(res.Ended.Sub(res.Started), 0))})
	}
	all = append(all, fact{"Seed", fmt.Sprint(res.Seed)})
	if res.Looks > 0 {
		all = append(all, fact{"Looks", "judged " + count(res.Looks, "time") + " before it was extended; the intervals are wider for that"})
	}
	if len(disturbed) > 0 {
		all = append(all, fact{"Disturbed", fmt.Sprintf("%d of %s: other processes used up to %s of the processors", len(disturbed), count(len(s.runs), "run"), percent(slices.Max(disturbed)))})
	}
	all = append(all, fact{"Scaled", res.Scaled}, fact{"Settings", res.Settings}, fact{"Command", command(res.Command)})
	return slices.DeleteFunc(all, func(f fact) bool { return f.Value == "" })
}

// machine is one line.
func machine(m results.Machine) string {
	parts := []string{pick(m.CPU != "", fmt.Sprintf("%d × %s", m.CPUs, m.CPU), count(m.CPUs, "CPU"))}
	if m.GOMAXPROCS != m.CPUs {
		parts = append(parts, fmt.Sprintf("GOMAXPROCS %d", m.GOMAXPROCS))
	}
	if m.MemoryMiB > 0 {
		parts = append(parts, size(float64(m.MemoryMiB)*(1<<20)))
	}
	return strings.Join(append(parts, m.OS+"/"+m.Arch, m.Go), " · ")
}

// command writes the command as a shell would take it.
func command(args []string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		if a == "" || strings.ContainsAny(a, " \t\n'\"\\$`*?<>|&;()[]{}#~!") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		quoted[i] = a
	}
	return strings.Join(quoted, " ")
}

// Failed lists the runs that have no measurement, and why.
func (s *session) Failed() (out []string) {
	for i := range s.runs {
		if r := &s.runs[i]; r.Failed != "" {
			out = append(out, title(r)+": "+results.Gist(r.Failed))
		}
	}
	return out
}

// InShort describes each set-up's high load (or its last) in one sentence.
func (s *session) InShort() (out []string) {
	for _, g := range s.setups {
		var parts []string
		l := g.loads[len(g.loads)-1]
		for _, x := range g.loads {
			if x.name == "high" {
				l = x
			}
		}
		for _, c := range l.cells {
			if good := c.stat(rate("ok")); len(good) > 0 {
				share := c.row(rates).Cells[len(rates)]
				parts = append(parts, c.pattern+" "+good.or(number)+pick(share != none, " ("+share+" refused)", "")+pick(len(c.killed) > 0, " until it was killed", ""))
			}
		}
		if len(parts) > 0 && len(s.ownTables(g)) == 0 {
			out = append(out, fmt.Sprintf("%s, at %s, good answers a second: %s.", sentence(setupName(g.name)), loadName(l.name), strings.Join(parts, ", ")))
		}
	}
	return out
}
