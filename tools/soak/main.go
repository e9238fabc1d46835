// Soak runs what is about real time, one at a time, and prints a line for
// every figure with its bound.
//
//	go run ./tools/soak [-list] [-write] [PATTERN...]
//
// A pattern is a regular expression over names such as jobqueue/internal/proof.Kills.
// Without one, everything runs. The result is a failure if anything failed.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spillway-go/spillway/internal/soak"
)

// page is where the last results are kept.
const page = "spillway-results/soak.md"

// require names the programs without which tests fail where they would be skipped.
const require = "SPILLWAY_REQUIRE"

// longest bounds one test, so that one that hangs does not hide the others.
const longest = "30m"

// commands are what belongs to the soak and is no test of its own.
var commands = []item{
	{Name: "fuzz", Args: []string{"bash", "scripts/fuzz.sh", "5s"}, Asks: "five seconds of random search for each fuzz target find no failing input"},
	{Name: "lab under -race", Args: []string{"go", "test", "-race", "-count=1", "-vet=off", "-tags=soak", "-skip=^TestSoak", "./cmd/...", "./lab/...", "./lab/contestants/...", "./load/...", "./examples/patientapi/checks/conformance/r4", "./internal/debugpage", "./internal/sim", "./limiter", "./clusterlimit", "./clusterlimit/internal/budget"}, Asks: "the laboratory's long tests, which the gate runs without the race detector, find no race"},
	{Name: "release", Args: []string{"bash", "scripts/release.sh", "--dry-run", "v0.0.0-rehearsal"}, Asks: "a release can be made of every module"},
}

func main() {
	list := flag.Bool("list", false, "only print the names")
	write := flag.Bool("write", false, "write the results of a whole run to "+page)
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: go run ./tools/soak [-list] [-write] [PATTERN...]\n\nRuns the tests of what is about real time, one at a time. Leave the machine alone meanwhile.\nA pattern is a regular expression over the names that -list prints.\n\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends this program at once
	if err := run(ctx, *list, *write, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, list, write bool, patterns []string) error {
	items, err := find(os.DirFS("."))
	if err != nil {
		return err
	}
	if len(items) == 0 {
		return fmt.Errorf("no test of the soak found: run it at the root of the repository")
	}
	items = append(items, commands...)
	chosen, err := choose(items, patterns)
	if err != nil {
		return err
	}
	if write && len(chosen) < len(items) {
		return fmt.Errorf("-write keeps the results of a whole run: leave out the patterns")
	}
	if list {
		for _, it := range chosen {
			fmt.Println(it.Name)
		}
		return nil
	}
	last, _ := os.ReadFile(page)
	fmt.Printf("%d items of the soak, one at a time; %s. Leave the machine alone meanwhile.\n", len(chosen), expected(chosen, string(last)))
	began := time.Now()
	var results []result
	failed := 0
	for i, it := range chosen {
		fmt.Printf("[%d/%d, %v] %s\n", i+1, len(chosen), time.Since(began).Round(time.Second), it.Name)
		r := it.run(ctx)
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted after %d of %d", i, len(chosen))
		}
		for _, f := range r.Figures {
			verdict := "ok"
			if !f.Held {
				verdict = "FAILED"
			}
			fmt.Printf("    %-6s %s: %s, bound %s\n", verdict, f.Name, f.Got, f.Bound)
		}
		switch {
		case r.Failed:
			failed++
			fmt.Printf("    FAILED after %v; repeat it with: %s\n%s\n", r.Took.Round(time.Second), strings.Join(it.Args, " "), r.Output)
		case len(r.Figures) == 0:
			fmt.Printf("    ok     %s\n", it.Asks)
		}
		results = append(results, r)
	}
	fmt.Printf("%d passed, %d failed in %v\n", len(chosen)-failed, failed, time.Since(began).Round(time.Second))
	if write {
		if err := os.MkdirAll(filepath.Dir(page), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(page, document(results, time.Now(), machine()), 0o644); err != nil {
			return err
		}
		fmt.Println("written:", page)
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d failed", failed, len(chosen))
	}
	return nil
}

// An item is one test of the soak, or one command.
type item struct {
	Name string   // as patterns and the page have it
	Args []string // the command
	Asks string   // what passing means, where there is no figure
	Test bool     // the command is one TestSoak…
}

type result struct {
	item
	Took    time.Duration
	Figures []soak.Figure
	Failed  bool
	Output  string // all that was printed
}

// run executes an item and collects its figures. The end of ctx kills the command.
func (it item) run(ctx context.Context) result {
	cmd := exec.CommandContext(ctx, it.Args[0], it.Args[1:]...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // scripts clean up
	cmd.WaitDelay = 10 * time.Second
	if os.Getenv(require) == "" {
		cmd.Env = append(os.Environ(), require+"=chromium,redis,nginx,postgres")
	}
	began := time.Now()
	err := cmd.Run()
	r := result{item: it, Took: time.Since(began), Failed: err != nil}
	var text strings.Builder
	for line := range strings.Lines(out.String()) {
		var event struct{ Action, Output string }
		if json.Unmarshal([]byte(line), &event) == nil && event.Action != "" {
			line = event.Output
		}
		if f, ok := soak.Parse(line); ok {
			r.Figures = append(r.Figures, f)
		}
		text.WriteString(line)
	}
	unrun := strings.Contains(text.String(), "no tests to run") || strings.Contains(text.String(), "--- SKIP")
	if unrun || it.Test && strings.Contains(text.String(), "[no test files]") {
		r.Failed = true // what was not looked at has not passed
	}
	r.Output = text.String()
	return r
}

// choose returns the items that match any pattern, or all where there is none.
func choose(items []item, patterns []string) ([]item, error) {
	if len(patterns) == 0 {
		return items, nil
	}
	var chosen []item
	matched := make([]bool, len(patterns))
	for _, it := range items {
		is := false
		for i, p := range patterns {
			re, err := regexp.Compile("(?i)" + p)
			if err != nil {
				return nil, fmt.Errorf("%q is no regular expression: %v", p, err)
			}
			if re.MatchString(it.Name) {
				matched[i], is = true, true
			}
		}
		if is {
			chosen = append(chosen, it)
		}
	}
	for i, p := range patterns {
		if !matched[i] {
			return nil, fmt.Errorf("no name matches %q: -list prints the names", p)
		}
	}
	return chosen, nil
}

// machine describes where the figures come from.
func machine() string {
	name := ""
	if file, err := os.Open("/proc/cpuinfo"); err == nil {
		defer file.Close()
		name = model(file)
	}
	return strings.TrimSpace(fmt.Sprintf("%d processors %s, %s/%s, %s", runtime.NumCPU(), name, runtime.GOOS, runtime.GOARCH, runtime.Version()))
}

func model(cpuinfo io.Reader) string {
	for s := bufio.NewScanner(cpuinfo); s.Scan(); {
		if key, value, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return "(" + strings.TrimSpace(value) + ")"
		}
	}
	return ""
}

// short is the name of a test of the soak: its folder, and the function's name without
// what all have in common.
func short(folder, function string) string {
	return filepath.ToSlash(folder) + "." + strings.TrimPrefix(function, "TestSoak")
}
