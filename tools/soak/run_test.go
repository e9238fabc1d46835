package main

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/spillway-go/spillway/internal/soak"
)

func TestTestsOfTheSoakAreFound(t *testing.T) {
	items, err := find(fstest.MapFS{
		"a/kill_soak_test.go": {Data: []byte("//go:build soak\n\npackage a\n\n// TestSoakKills kills it. A second sentence.\nfunc TestSoakKills(t *testing.T) {}\n\nfunc TestMain(m *testing.M) {}\n")},
		"a/b/rate_test.go":    {Data: []byte("//go:build soak && !race && unix\n\npackage b\n\nfunc TestSoakRate(t *testing.T) {}\n")},
		"a/gate_test.go":      {Data: []byte("package a\n\nfunc TestSoakIsNotTagged(t *testing.T) {}\n")},
		"a/unix_test.go":      {Data: []byte("//go:build unix || soak\n\npackage a\n\nfunc TestSoakIsInTheGateToo(t *testing.T) {}\n")},
		"testdata/x_test.go":  {Data: []byte("//go:build soak\n\npackage x\n\nfunc TestSoakData(t *testing.T) {}\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, it := range items {
		got = append(got, it.Name+" "+it.Args[len(it.Args)-2]+" "+it.Asks)
	}
	want := "a/b.Rate -run=^TestSoakRate$ ; a.Kills -race kills it"
	if s := strings.Join(got, "; "); s != want {
		t.Errorf("found %q, want %q", s, want)
	}
}

func TestPatternsChooseByName(t *testing.T) {
	items := []item{{Name: "a.Kills"}, {Name: "a/b.Rate"}, {Name: "fuzz"}}
	for _, tt := range []struct{ patterns, want, err string }{
		{"", "a.Kills a/b.Rate fuzz", ""},
		{"kills", "a.Kills", ""},
		{"^a fuzz", "a.Kills a/b.Rate fuzz", ""},
		{"nothing", "", "-list prints the names"},
		{"(", "", "no regular expression"},
	} {
		chosen, err := choose(items, strings.Fields(tt.patterns))
		var names []string
		for _, it := range chosen {
			names = append(names, it.Name)
		}
		if got := strings.Join(names, " "); got != tt.want {
			t.Errorf("%q chose %q, want %q", tt.patterns, got, tt.want)
		}
		if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%q: error %v, want %q", tt.patterns, err, tt.err)
		}
	}
}

func TestThePageKeepsWhatARunTook(t *testing.T) {
	results := []result{
		{item: item{Name: "a.Kills"}, Took: 61 * time.Second, Figures: []soak.Figure{
			{Name: "lost", Got: "0 jobs", Bound: "≤ 0 jobs", Why: "a promise", Held: true},
			{Name: "twice", Got: "9 jobs", Bound: "≤ 5 jobs", Why: "a|b"},
		}, Failed: true},
		{item: item{Name: "fuzz", Asks: "finds nothing"}, Took: 3 * time.Second},
	}
	text := string(document(results, time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC), "2 processors"))
	for _, want := range []string{
		"25 November 2026 10:00 UTC, 2 processors; it took 1m4s",
		"| a.Kills | 61 s | lost | 0 jobs | ≤ 0 jobs | a promise |",
		`|  |  | twice | **9 jobs** | ≤ 5 jobs | a\|b |`,
		"| fuzz | 3 s | finds nothing | passed |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page has no %q:\n%s", want, text)
		}
	}
	if got, want := expected([]item{{Name: "a.Kills"}, {Name: "fuzz"}, {Name: "new"}}, text), "1m4s by the last results and 1 new"; got != want {
		t.Errorf("expected %q, want %q", got, want)
	}
}

func TestWhatDoesNotRunHasNotPassed(t *testing.T) {
	for _, tt := range []struct {
		print  string
		failed bool
	}{
		{"ok", false},
		{"ok  \tx\t0.1s [no tests to run]", true},
		{"--- SKIP: TestSoakKills", true},
	} {
		r := item{Args: []string{"echo", tt.print}}.run(t.Context())
		if r.Failed != tt.failed {
			t.Errorf("%q: failed is %v, want %v", tt.print, r.Failed, tt.failed)
		}
	}
	if r := (item{Args: []string{"false"}}).run(t.Context()); !r.Failed {
		t.Error("a command that failed passed")
	}
}

func TestATestThatWouldNeverRunIsAnError(t *testing.T) {
	_, err := find(fstest.MapFS{"a/x_soak_test.go": {Data: []byte("//go:build soak\n\npackage a\n\nfunc TestForgotten(t *testing.T) {}\n")}})
	if err == nil || !strings.Contains(err.Error(), "TestForgotten is in neither the gate nor the soak") {
		t.Error(err)
	}
}

// What the gate runs without the race detector, the soak runs with it.
func TestEveryTestWithoutTheDetectorIsInTheSoak(t *testing.T) {
	var folders []string
	for _, c := range commands {
		if c.Name == "lab under -race" {
			folders = c.Args
		}
	}
	root := os.DirFS("../..")
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "internal/soak/") || strings.HasPrefix(name, "tools/soak/") {
			return err
		}
		source, err := fs.ReadFile(root, name)
		if err == nil && strings.Contains(string(source), "soak.WithoutRace(") && !strings.HasPrefix(name, "cmd/") && !strings.HasPrefix(name, "lab/") && !strings.HasPrefix(name, "load/") && !slices.Contains(folders, "./"+path.Dir(name)) {
			t.Errorf("%s: the soak does not run this package under the race detector: see commands", name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
