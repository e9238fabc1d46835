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

// Facts are how the session was made.
func (s *session) Facts() []fact {
	res, twins := s.Results, 0
	for _, r := range s.runs {
		if r.Twin {
			twins++
		}
	}
	of, disturbed, most := disturbance(s.runs)
	all := []fact{
		{"Machine", machine(res.Machine)},
		{"Revision", res.Revision},
		{"Runs", count(len(s.runs), "run") + pick(res.Repeats > 0, " in "+count(res.Repeats, "repeat"), "") + pick(twins > 0, "; "+count(twins, "twin")+" to measure noise", "")},
		{"Made", pick(res.Started.IsZero(), "", res.Started.UTC().Format("2 January 2006, 15:04 MST")) + pick(res.Ended.IsZero(), "", fmt.Sprintf(", in %v", max(res.Ended.Sub(res.Started), 0).Round(time.Second)))},
		{"Seed", fmt.Sprint(res.Seed)},
		{"How sure", "the interval of a median misses the truth in at most one case of eight, on the side that could make a verdict wrong in one of sixteen; with fewer than 7 repeats, of exact counts and yes or no with fewer than 5, there is no verdict"},
		{"Looks", pick(res.Looks > 0, "judged "+count(res.Looks, "time")+" before it was extended; the intervals are wider for that", "")},
		{"Disturbed", pick(disturbed > 0, fmt.Sprintf("%d of %s: other processes used up to %s of the processors", disturbed, count(of, "run"), percent(most)), "")},
		{"Scaled", res.Scaled},
		{"Settings", res.Settings},
		{"Command", command(res.Command)},
	}
	return slices.DeleteFunc(all, func(f fact) bool { return f.Value == "" })
}

// disturbance is how many runs there are, without those that failed, how many of them other
// processes disturbed, and by how much at most.
func disturbance(runs []results.Run) (all, disturbed int, most float64) {
	for _, r := range runs {
		if r.Failed != "" {
			continue
		}
		if all++; r.Disturbed > 0 {
			disturbed, most = disturbed+1, max(most, r.Disturbed)
		}
	}
	return all, disturbed, most
}

// Noisy says, as two sentences, that other processes disturbed most of the runs; it is empty where
// they did not. Runs that failed do not count.
func (s *session) Noisy() string {
	all, disturbed, most := disturbance(s.runs)
	if 2*disturbed <= all {
		return ""
	}
	return fmt.Sprintf("Other processes disturbed %d of %s: they used up to %s of the processors. Repeat the session on a quiet machine.", disturbed, count(all, "run"), percent(most))
}

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

// Failed lists the runs that have no measurement, and why.
func (s *session) Failed() (out []string) {
	for _, r := range s.runs {
		if r.Failed != "" {
			out = append(out, fmt.Sprintf("%s, %s, %s%s, repeat %d: %s", setupName(r.Setup), loadName(r.Load), r.Pattern, pick(r.Twin, " (twin)", ""), r.Repeat+1, results.Gist(r.Failed)))
		}
	}
	return out
}

// Killed tells of the contestants that were killed, and why.
func (s *session) Killed() (out []string) {
	for _, c := range s.cells {
		if len(c.killed) > 0 {
			out = append(out, fmt.Sprintf("%s, %s: %s was killed in %d of %s: %s. Its figures count up to then.",
				sentence(setupName(c.Setup)), loadName(c.Load), c.Pattern, len(c.killed), count(len(c.runs), "run"), c.killed[0]))
		}
	}
	return out
}
