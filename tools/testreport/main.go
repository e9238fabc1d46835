// Testreport reads what go test -json prints and shows it as a person wants to read it: a
// line for each package, all output of what failed, and the names of what failed as the
// last lines. It keeps the counts of the steps of a run in a file, from which -table makes
// the table at the run's end.
//
//	go test -json work | testreport -step tests -to FILE
//	testreport -note SECONDS -step NAME -to FILE    a step without tests
//	testreport -table -to FILE
//
// It exits with status 1 if a test failed, a package did not build, or no test ran.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

func main() {
	name := flag.String("step", "", "the step's `name`")
	to := flag.String("to", "", "the `file` that a line about the step is appended to")
	note := flag.Float64("note", -1, "only note that the step took so many `seconds`")
	table := flag.Bool("table", false, "print the table of the steps in the file")
	flag.Parse()
	failed, err := run(*name, *to, *note, *table)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(2)
	}
	if failed {
		os.Exit(1)
	}
}

func run(name, to string, note float64, table bool) (failed bool, err error) {
	if to == "" || name == "" && !table {
		return false, fmt.Errorf("say -step NAME and -to FILE, or -table and -to FILE")
	}
	if table {
		file, err := os.Open(to)
		if err != nil {
			return false, err
		}
		defer file.Close()
		return false, show(os.Stdout, file)
	}
	s := step{Step: name, Seconds: note}
	if note < 0 {
		began := time.Now()
		if s, err = read(os.Stdin, os.Stdout); err != nil {
			return false, err
		}
		s.Step, s.Seconds = name, time.Since(began).Seconds()
	}
	file, err := os.OpenFile(to, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return false, err
	}
	err = json.NewEncoder(file).Encode(s)
	if e := file.Close(); err == nil {
		err = e
	}
	if note < 0 && s.Tests == 0 {
		fmt.Println("no test ran")
		return true, err
	}
	return s.Failed > 0, err
}

// A step is what one step of a run did, a line of the file.
type step struct {
	Step    string
	Seconds float64
	Tests   int // those that ran, subtests apart
	Failed  int // tests, and packages that failed without one
	Skipped []skip
	Slowest []timed
	Names   []string `json:"-"` // of failed tests, of those that never ended, and of packages that failed without one
}

type skip struct{ Test, Why string }

type timed struct {
	Test    string
	Seconds float64
}

// kept is how many of the slowest tests are shown.
const kept = 10

// event is a line of go test -json.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
	FailedBuild                               string
}

// read collects the events of a go test and prints what somebody would read: packages as
// they end, and what failed.
func read(in io.Reader, out io.Writer) (step, error) {
	var s step
	said := map[string]*strings.Builder{} // by package and test, until the test ends
	ran, left := map[string]int{}, map[string]int{}
	broken := map[string]bool{} // packages with a test that failed
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) != nil || e.Action == "" {
				fmt.Fprint(out, line) // not from go test
			} else {
				s.take(e, said, ran, left, broken, out)
			}
		}
		if err == io.EOF {
			s.rest("", said, out) // go test itself has ended before its tests
			break
		}
		if err != nil {
			return s, err
		}
	}
	slices.SortFunc(s.Slowest, func(a, b timed) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), strings.Compare(a.Test, b.Test))
	})
	s.Slowest = s.Slowest[:min(kept, len(s.Slowest))]
	for _, name := range s.Names {
		fmt.Fprintln(out, "failed:", name)
	}
	return s, nil
}

func (s *step) take(e event, said map[string]*strings.Builder, ran, left map[string]int, broken map[string]bool, out io.Writer) {
	key := e.Package + " " + e.Test
	name := called(key)
	sub := strings.Contains(e.Test, "/")
	switch e.Action {
	case "build-output":
		fmt.Fprint(out, e.Output)
	case "output":
		if said[key] == nil {
			said[key] = &strings.Builder{}
		}
		said[key].WriteString(e.Output)
	case "pass", "fail", "skip":
		var text string
		if b := said[key]; b != nil {
			text = b.String()
		}
		delete(said, key)
		if e.Test == "" {
			if e.Action == "fail" {
				s.rest(e.Package+" ", said, out)
			}
			s.ended(e, text, ran[e.Package], left[e.Package], broken[e.Package], out)
			return
		}
		if e.Action == "fail" {
			broken[e.Package] = true
			fmt.Fprint(out, text)
		}
		if e.Action == "skip" {
			left[e.Package]++
			s.Skipped = append(s.Skipped, skip{name, reason(text)})
		}
		if sub {
			return
		}
		if e.Action != "skip" {
			s.Tests++
			ran[e.Package]++
			s.Slowest = append(s.Slowest, timed{name, e.Elapsed})
		}
		if e.Action == "fail" {
			s.Failed++
			s.Names = append(s.Names, name)
		}
	}
}

// called is a test's name for people.
func called(key string) string {
	pkg, test, _ := strings.Cut(strings.TrimPrefix(key, "github.com/spillway-go/spillway/"), " ")
	return pkg + "." + test
}

// rest prints the output of tests that never ended, below a prefix of their keys: a panic
// or a timeout ended their process, and only they say why.
func (s *step) rest(prefix string, said map[string]*strings.Builder, out io.Writer) {
	for _, key := range slices.Sorted(maps.Keys(said)) {
		if strings.HasPrefix(key, prefix) {
			fmt.Fprint(out, said[key])
			s.Names = append(s.Names, called(key)+" (never ended)")
			delete(said, key)
		}
	}
}

// ended prints the line of a package, after its own output if it failed.
func (s *step) ended(e event, text string, ran, left int, broken bool, out io.Writer) {
	path := strings.TrimPrefix(e.Package, "github.com/spillway-go/")
	switch {
	case e.Action == "fail":
		if !broken {
			s.Failed++
			s.Names = append(s.Names, path)
		}
		fmt.Fprint(out, text)
		fmt.Fprintf(out, "FAIL    %s %.1fs\n", path, e.Elapsed)
	case e.Action == "pass" && ran+left > 0:
		fmt.Fprintf(out, "ok      %s %.1fs, %d tests", path, e.Elapsed, ran)
		if left > 0 {
			fmt.Fprintf(out, ", %d skipped", left)
		}
		fmt.Fprintln(out)
	}
}

// reason is what a skipped test said, without the place in the code.
func reason(text string) string {
	why := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "===") || strings.HasPrefix(line, "---") {
			continue
		}
		if _, after, found := strings.Cut(line, "_test.go:"); found {
			if _, rest, ok := strings.Cut(after, ": "); ok {
				line = rest
			}
		}
		why = strings.TrimSpace(why + " " + line)
	}
	return why
}

// show prints the table of all steps.
func show(out io.Writer, in io.Reader) error {
	var all []step
	for dec := json.NewDecoder(in); ; {
		var s step
		if err := dec.Decode(&s); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		all = append(all, s)
	}
	fmt.Fprintf(out, "\n%-14s %8s %8s %8s\n", "step", "seconds", "tests", "skipped")
	var sum step
	for _, s := range all {
		fmt.Fprintf(out, "%-14s %8.0f %8s %8s\n", s.Step, s.Seconds, count(s.Tests), count(len(s.Skipped)))
		sum.Seconds += s.Seconds
		sum.Tests += s.Tests
		sum.Skipped = append(sum.Skipped, s.Skipped...)
		sum.Slowest = append(sum.Slowest, s.Slowest...)
	}
	fmt.Fprintf(out, "%-14s %8.0f %8s %8s\n", "all", sum.Seconds, count(sum.Tests), count(len(sum.Skipped)))

	byWhy := map[string][]string{}
	var whys []string
	for _, s := range sum.Skipped {
		if byWhy[s.Why] == nil {
			whys = append(whys, s.Why)
		}
		byWhy[s.Why] = append(byWhy[s.Why], s.Test)
	}
	for i, why := range whys {
		if i == 0 {
			fmt.Fprintln(out, "\nskipped:")
		}
		tests := byWhy[why]
		more := ""
		if len(tests) > 3 {
			more = fmt.Sprintf(" and %d more", len(tests)-3)
			tests = tests[:3]
		}
		fmt.Fprintf(out, "  %s: %s%s\n", why, strings.Join(tests, ", "), more)
	}
	slices.SortStableFunc(sum.Slowest, func(a, b timed) int { return cmp.Compare(b.Seconds, a.Seconds) })
	for i, t := range sum.Slowest[:min(kept, len(sum.Slowest))] {
		if i == 0 {
			fmt.Fprintln(out, "\nslowest tests:")
		}
		fmt.Fprintf(out, "  %6.1f s  %s\n", t.Seconds, t.Test)
	}
	return nil
}

// count is a number, or nothing where there were no tests.
func count(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}
