package load

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	"github.com/spillway-go/spillway/lab/ledger/planted"
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
func session(t *testing.T, spoil func(*Config)) (results.Results, []results.Run, error) {
	t.Helper()
	c := experiment.Sized[Config]("quick")
	c.Time = 50 * time.Millisecond
	spoil(&c)
	return experiment.Session{Dir: t.TempDir() + "/out", Repeats: 1, Seed: 1, Progress: experiment.NewProgress(io.Discard, false, 0)}.Run(t.Context(), Experiment, &c)
}

func TestVerdictsFollowTheFigures(t *testing.T) {
	var runs []results.Run
	for _, name := range names() {
		for _, k := range key(name, claimed).AndTwin(name == spillway) {
			runs = append(runs, results.Run{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Twin: k.Twin, Elapsed: 1})
		}
	}
	planted.Check(t, Experiment.Family, runs)
}

func TestASmallSessionMeasuresWhatIsInstalled(t *testing.T) {
	install(t, "wrk", "hey", "vegeta", "k6", "oha")
	res, runs, err := session(t, func(*Config) {})
	if err != nil || res.Partial != "" {
		t.Fatal(err, res.Partial)
	}
	if len(runs) != len(names())+1 { // spillway twice
		t.Errorf("%d runs", len(runs))
	}
	for _, r := range runs {
		if n := r.Extra["requests"]; n < 3 || r.Pattern != netHTTP && n > 3 {
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
	res, _, err := session(t, func(*Config) {})
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

func TestBadSettingsAreRefused(t *testing.T) {
	install(t, "hey")
	for want, spoil := range map[string]func(*Config){
		`contestant "ab"`: func(c *Config) { c.Contestant = []string{"ab"} },
		"contestant wrk is not in PATH: apt install": func(c *Config) { c.Contestant = []string{"hey", "wrk"} },
		"connections is 0: want 1 to 10000":          func(c *Config) { c.Connections = 0 },
		"time is 1ms: want at least 50ms":            func(c *Config) { c.Time = time.Millisecond },
	} {
		if _, _, err := session(t, spoil); !errors.Is(err, experiment.ErrInput) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestEveryToolIsAskedForTheSameLoop(t *testing.T) {
	l := loop{URL: "http://127.0.0.1:1/", Connections: 1, Time: 90 * time.Second}
	want := map[string]string{
		"wrk":    "-t 1 -c 1 -d 90s http://127.0.0.1:1/ < ",
		"hey":    "-c 1 -z 1m30s http://127.0.0.1:1/ < ",
		"vegeta": "attack -rate 0 -workers 1 -max-workers 1 -connections 1 -duration 1m30s -output " + os.DevNull + " < GET http://127.0.0.1:1/\n",
		"k6":     "run --quiet --no-usage-report --vus 1 --duration 1m30s --discard-response-bodies - < import http from 'k6/http'; export default function () { http.get(\"http://127.0.0.1:1/\") }\n",
		"oha":    "--no-tui -c 1 -z 1m30s http://127.0.0.1:1/ < ",
	}
	for _, tool := range tools {
		args, stdin := tool.command(l)
		if got := strings.Join(args, " ") + " < " + stdin; got != want[tool.name] {
			t.Errorf("%s: %q, want %q", tool.name, got, want[tool.name])
		}
	}
	for _, name := range []string{wrk, k6} {
		if got := (Config{Time: 1300 * time.Millisecond}).lasts(name); got != 2*time.Second {
			t.Errorf("%s sends for %v", name, got)
		}
	}
}

func TestWhatTheSystemDoesNotTellIsMissing(t *testing.T) {
	s := served{Requests: 100, Time: time.Second}
	r := run(contestant.Used{}, s)
	if _, there := r.Extra["cpu_us"]; there || r.Extra["rate"] != 100 {
		t.Errorf("%v", r.Extra)
	}
}
