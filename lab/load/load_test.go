package load

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	"github.com/spillway-go/spillway/lab/ledger/ledgertest"
	"github.com/spillway-go/spillway/lab/results"
)

// TestMain makes the test binary the command, and each tool that a link to it is named for.
func TestMain(m *testing.M) {
	name := filepath.Base(os.Args[0])
	if slices.ContainsFunc(tools, func(t tool) bool { return t.name == name }) || len(os.Args) > 1 && os.Args[1] == "load" {
		os.Exit(fake())
	}
	labtest.Main(m, Experiment.Roles)
}

// fake sends three requests to the URL among the arguments or in the standard input.
func fake() int {
	stdin, _ := io.ReadAll(os.Stdin)
	url := regexp.MustCompile(`http://[^\s"']+`).FindString(strings.Join(os.Args[1:], " ") + " " + string(stdin))
	for range 3 {
		resp, err := http.Get(url)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		resp.Body.Close()
	}
	return 0
}

// install makes PATH a folder with these tools alone.
func install(t *testing.T, names ...string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range names {
		if err := os.Symlink(self, filepath.Join(dir, name)); err != nil {
			t.Skip(err)
		}
	}
	t.Setenv("PATH", dir)
}

// session is a short one, of one repeat.
func session(t *testing.T) (results.Results, []results.Run, error) {
	t.Helper()
	c := experiment.Sized[Config]("quick")
	c.Time = 50 * time.Millisecond
	return experiment.Session{Dir: t.TempDir() + "/out", Repeats: 1, Seed: 1, Progress: experiment.NewProgress(io.Discard, false, 0)}.Run(t.Context(), Experiment, &c)
}

func TestVerdictsFollowTheFigures(t *testing.T) {
	var runs []results.Run
	for _, tool := range tools {
		for _, k := range key(tool.name).AndTwin(tool.name == spillway) {
			runs = append(runs, results.Run{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Twin: k.Twin, Elapsed: 1})
		}
	}
	ledgertest.Check(t, Experiment.Family, runs)
}

func TestASmallSessionMeasuresWhatIsInstalled(t *testing.T) {
	install(t, "wrk", "hey", "vegeta", "k6", "oha")
	res, runs, err := session(t)
	if err != nil || res.Partial != "" {
		t.Fatal(err, res.Partial)
	}
	if len(runs) != len(tools)+1 { // spillway twice
		t.Errorf("%d runs", len(runs))
	}
	for _, r := range runs {
		if n := r.Extra["requests"]; n != 3 {
			t.Errorf("%s: the server counted %v requests", r.Pattern, n)
		}
	}
	for _, a := range res.Claims[0].Answers {
		if a.Missing && a.Part != "memory" || strings.Contains(a.Why, "PATH") { // there are systems that do not tell the memory
			t.Errorf("%s: %s", a.Part, a.Why)
		}
	}
}

func TestAClaimAboutAToolThatIsMissingSaysHowToGetIt(t *testing.T) {
	install(t, "hey")
	res, _, err := session(t)
	if err != nil {
		t.Fatal(err)
	}
	says := map[string]string{"wrk": "apt install wrk", "vegeta": "go install github.com/tsenart/vegeta", "k6": "go install go.k6.io/k6"}
	for _, a := range res.Claims[0].Answers {
		if want := says[a.Part]; a.Verdict != results.Inconclusive || want != "" && !strings.Contains(a.Why, want) || want == "" && strings.Contains(a.Why, "PATH") {
			t.Errorf("%s: %s, %s", a.Part, a.Verdict, a.Why)
		}
	}
}

func TestEveryToolIsAskedForTheSameLoop(t *testing.T) {
	l := loop{URL: "http://127.0.0.1:1/", Time: 90 * time.Second}
	threads := min(runtime.GOMAXPROCS(0), 64)
	want := map[string]string{
		spillway: "load --clients 64 --duration 1m30s --json http://127.0.0.1:1/ < ",
		"wrk":    fmt.Sprintf("-t %d -c 64 -d 90s http://127.0.0.1:1/ < ", threads),
		"hey":    "-c 64 -z 1m30s http://127.0.0.1:1/ < ",
		"vegeta": "attack -rate 0 -workers 64 -max-workers 64 -connections 64 -duration 1m30s -output " + os.DevNull + " < GET http://127.0.0.1:1/\n",
		"k6":     "run --quiet --no-usage-report --vus 64 --duration 1m30s --discard-response-bodies - < import http from 'k6/http'; export default function () { http.get(\"http://127.0.0.1:1/\") }\n",
		"oha":    "--no-tui -c 64 -z 1m30s http://127.0.0.1:1/ < ",
	}
	for _, tool := range tools {
		args, stdin := tool.command(l)
		if got := strings.Join(args, " ") + " < " + stdin; got != want[tool.name] {
			t.Errorf("%s: %q, want %q", tool.name, got, want[tool.name])
		}
	}
	for _, tool := range tools {
		if got := tool.lasts(1300 * time.Millisecond); (got == 2*time.Second) != (tool.name == wrk || tool.name == k6) {
			t.Errorf("%s sends for %v", tool.name, got)
		}
	}
}

func TestWhatTheSystemDoesNotTellIsMissing(t *testing.T) {
	r := run(contestant.Used{}, 100, time.Second)
	if _, there := r.Extra["cpu_us"]; there || r.Extra["rate"] != 100 {
		t.Errorf("%v", r.Extra)
	}
}
