// Command ablation plays the simulator and the tests without each rule of the law, the gate and the
// shedding by processors, and prints a table. A rule whose absence nothing notices is one to delete.
//
//	go run ./internal/ablation [-rules text]
//
// The rules are in rules.go. Each is switched off by a replaced line in a build of its own.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	only := flag.String("rules", "", "only rules whose names contain `text`, such as \"parking\" or \"cut:\"")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := table(ctx, *only); err != nil {
		fmt.Fprintln(os.Stderr, "ablation:", err)
		os.Exit(1)
	}
}

// packages are those whose tests may know a rule.
var packages = []string{"./limit", "./internal/gate", "./internal/processors", "./limiter", "./internal/sim"}

func table(ctx context.Context, only string) error {
	chosen := slices.DeleteFunc(slices.Clone(rules), func(r rule) bool { return !strings.Contains(r.name, only) })
	if len(chosen) == 0 {
		return fmt.Errorf("no rule has %q in its name; rules.go names them, such as %q", only, rules[0].name)
	}
	fmt.Fprintf(os.Stderr, "%d rules, one or two minutes each with the tests on two idle cores\n", len(chosen))
	fmt.Printf("| without | arena: mean, worst, critical, p99 ms | recorded: mean, worst | work lost of 60 mixes | tests that fail |\n|---|---|---|---|---|\n")
	known, err := row(ctx, nil, nil)
	if err != nil {
		return err
	}
	for i := range chosen {
		if _, err := row(ctx, &chosen[i], known); err != nil {
			return err
		}
	}
	return nil
}

// row plays without r, prints the figures and returns the tests that fail. A nil r is no rule; the known
// tests fail with all rules.
func row(ctx context.Context, r *rule, known []string) (failed []string, err error) {
	dir, err := os.MkdirTemp("", "ablation-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	name, overlay := "none", ""
	if r != nil {
		if name, overlay, err = r.name, filepath.Join(dir, "overlay.json"), r.write(dir); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	arena, err := figures(ctx, overlay, arenaTotal, "./internal/sim", "-run=^TestTable$", "-args", "-set=all", "-seeds=3")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	recorded, err := figures(ctx, overlay, recordedTotal, "./internal/sim", "-run=^TestInFrontOfRecordedBackends")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	mixes, err := figures(ctx, overlay, mixesLost, "./internal/sim", "-run=^TestNoMixIsHarmed$", "-args", "-mixes=60")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if failed, err = failures(ctx, overlay); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	failed = slices.DeleteFunc(failed, func(n string) bool { return slices.Contains(known, n) })
	lost, err := strconv.ParseFloat(mixes[0], 64)
	if err != nil {
		return nil, err
	}
	fmt.Printf("| %s | %s | %s | %.2f %% | %s |\n", name, strings.Join(arena, ", "), strings.Join(recorded, ", "), 100*lost, said(failed))
	fmt.Fprintf(os.Stderr, "%s: %s\n", name, time.Since(began).Round(time.Second))
	return failed, nil
}

// write writes the rule's file without the rule, and the overlay that puts the file in its place.
func (r *rule) write(dir string) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	text, err := r.without(root)
	if err != nil {
		return err
	}
	changed := filepath.Join(dir, filepath.Base(r.file))
	if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
		return err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, r.file): changed}})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600)
}

var (
	arenaTotal    = regexp.MustCompile(`(?m)^TOTAL mean (\S+) worst (\S+) crit \S+ worst (\S+) p99 (\S+)`)
	recordedTotal = regexp.MustCompile(`recorded: mean (\S+), worst (\S+) of`)
	mixesLost     = regexp.MustCompile(`mixes harmed, (\S+) of all work lost`)
	testFailed    = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)
)

// figures runs tests of a package, which may fail, and returns what the expression found.
func figures(ctx context.Context, overlay string, what *regexp.Regexp, args ...string) ([]string, error) {
	out, err := test(ctx, overlay, append([]string{"-v", "-vet=off"}, args...)...)
	if err != nil {
		return nil, err
	}
	found := what.FindStringSubmatch(out)
	if found == nil {
		return nil, fmt.Errorf("no figures in: %s", out)
	}
	return found[1:], nil
}

// failures returns the names of the tests that fail. Whether a document has today's figures is not
// asked (internal/pages).
func failures(ctx context.Context, overlay string) (names []string, err error) {
	out, err := test(ctx, overlay, append([]string{"-vet=off", "-skip=/as_the_page_says|//as_the_page_says"}, packages...)...)
	if err != nil {
		return nil, err
	}
	for _, found := range testFailed.FindAllStringSubmatch(out, -1) {
		names = append(names, found[1])
	}
	return names, nil
}

// test runs go test and returns what it printed. Tests that fail are no error.
func test(ctx context.Context, overlay string, args ...string) (string, error) {
	flags := []string{"test", "-count=1"}
	if overlay != "" {
		flags = append(flags, "-overlay="+overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(flags, args...)...)
	out, err := cmd.CombinedOutput()
	failed, ok := errors.AsType[*exec.ExitError](err)
	if ok && failed.ExitCode() == 1 && !strings.Contains(string(out), "[build failed]") {
		err = nil
	}
	if err != nil {
		return "", fmt.Errorf("go %s: %w: %s", strings.Join(cmd.Args[1:], " "), err, out)
	}
	return string(out), nil
}

// said is what the table says of tests that fail.
func said(names []string) string {
	const most = 3
	switch n := len(names); {
	case n == 0:
		return "none"
	case n > most:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n-most)
	}
	return strings.Join(names, ", ")
}
