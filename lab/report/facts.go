package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/lab/results"
)

// fact is one about the session.
type fact struct{ Name, Value string }

// PageTitle is what a browser calls the page.
func (s *session) PageTitle() string { return s.Results.Experiment + ": " + s.Family.Title }

// Facts are how the session was made. What several experiments on one page share is at its
// head.
func (s *session) Facts() []fact {
	res, twins := s.Results, 0
	for _, r := range s.runs {
		if r.Twin {
			twins++
		}
	}
	runs, disturbed, most := count(len(s.runs), "run"), 0, 0.0
	for _, r := range s.disturbed() {
		disturbed, most = disturbed+1, max(most, r.Disturbed)
	}
	return known(
		fact{"Machine", pick(s.brief, "", machine(res.Machine))},
		fact{"Revision", pick(s.brief, "", res.Revision)},
		fact{"Runs", runs + " in " + count(res.Repeats, "repeat") + pick(twins > 0, "; "+count(twins, "twin")+" to measure noise", "")},
		fact{"Made", made(res.Started, res.Ended)},
		fact{"Seed", fmt.Sprint(res.Seed)},
		fact{"How sure", pick(s.brief, "", howSure)},
		fact{"Looks", pick(res.Looks > 0, "judged "+count(res.Looks, "time")+" before it was extended; the intervals are wider for that", "")},
		fact{"Disturbed", pick(disturbed > 0, fmt.Sprintf("%d of %s: other processes used up to %s of the processors", disturbed, runs, percent(most)), "")},
		fact{"Scaled", res.Scaled},
		fact{"Settings", res.Settings},
		fact{"Command", command(res.Command)})
}

// known are the facts that have a value.
func known(all ...fact) []fact {
	return slices.DeleteFunc(all, func(f fact) bool { return f.Value == "" })
}

// disturbed are the runs beside which other processes used the processors.
func (s *session) disturbed() (out []results.Run) {
	for _, r := range s.runs {
		if r.Disturbed > 0 {
			out = append(out, r)
		}
	}
	return out
}

// made is when it was made, and how long it took if it has ended.
func made(from, to time.Time) string {
	if from.IsZero() {
		return ""
	}
	return from.UTC().Format("2 January 2006, 15:04 MST") + pick(to.IsZero(), "", fmt.Sprintf(", in %v", max(to.Sub(from), 0).Round(time.Second)))
}

// howSure is what the judge promises, looks included.
const howSure = "the interval of a median misses the truth in at most one case of eight, on the side that could make a verdict wrong in one of sixteen; with fewer than 5 repeats there is no verdict"

// machine is one line.
func machine(m results.Machine) string {
	return strings.Join(filled(
		pick(m.CPU != "", fmt.Sprintf("%d × %s", m.CPUs, m.CPU), count(m.CPUs, "CPU")),
		pick(m.GOMAXPROCS != m.CPUs, fmt.Sprint("GOMAXPROCS ", m.GOMAXPROCS), ""),
		pick(m.MemoryMiB > 0, size(float64(m.MemoryMiB)*(1<<20)), ""),
		m.OS+"/"+m.Arch, m.Go), " · ")
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

// again is the command that does a session again: with its seed, into a new folder.
func again(args []string, seed uint64) (out []string) {
	if len(args) == 0 {
		return nil
	}
	for i := 0; i < len(args); i++ {
		flag, _, whole := strings.Cut(args[i], "=")
		switch flag {
		case "--out", "--seed", "--resume":
			if !whole {
				i++ // its value
			}
		default:
			out = append(out, args[i])
		}
	}
	return append(out, "--seed", fmt.Sprint(seed))
}

// Again is the command that does the session again.
func (s *session) Again() []string { return again(s.Results.Command, s.Results.Seed) }

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
	for _, g := range s.served {
		l := g.main()
		var parts []string
		for _, c := range l.cells {
			if good := c.stat(rate("ok")); len(good) > 0 {
				share := c.stat(refusedShare.of).or(refusedShare.format)
				parts = append(parts, c.Pattern+" "+good.or(number)+pick(share != none, " ("+share+" refused)", "")+pick(len(c.killed) > 0, " until it was killed", ""))
			}
		}
		if len(parts) > 0 {
			out = append(out, fmt.Sprintf("%s, at %s, good answers a second: %s.", sentence(g.Name), loadName(l.name), strings.Join(parts, ", ")))
		}
	}
	return out
}

// killed tells of the contestants that were killed, and why.
func (s *session) killed() (out []string) {
	for _, c := range s.cells {
		if len(c.killed) > 0 {
			out = append(out, fmt.Sprintf("%s, %s: %s was killed in %d of %s: %s. Its figures count up to then.",
				sentence(setupName(c.Setup)), loadName(c.Load), c.Pattern, len(c.killed), count(len(c.runs), "run"), c.killed[0]))
		}
	}
	return out
}
