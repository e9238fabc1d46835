package report

import (
	"bytes"
	"flag"
	"html"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/judge"
	"github.com/spillway-go/spillway/load/usage"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func rendered(t *testing.T, res results.Results, runs []results.Run) string {
	return renderedOf(t, fakeFamily, res, runs)
}

func renderedOf(t *testing.T, fam ledger.Family, res results.Results, runs []results.Run) string {
	t.Helper()
	text, err := page(fam, res, runs)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func summed(t *testing.T, res results.Results, runs []results.Run, opts Options) string {
	return summedOf(t, fakeFamily, res, runs, opts)
}

func summedOf(t *testing.T, fam ledger.Family, res results.Results, runs []results.Run, opts Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := Terminal(&b, fam, res, runs, opts); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Everything with which a page could load something from outside.
var loads = []*regexp.Regexp{
	regexp.MustCompile(`(?i)<(script|img|link|iframe|object|embed|source|image|use|base|video|audio)\b[^>]*?\s(src|href|data|srcset|xlink:href)\s*=\s*["']?([^"'\s>]*)`),
	regexp.MustCompile(`(?i)(url)(\()\s*["']?([^"')]*)`),
	regexp.MustCompile(`(?i)(@import)(\s+)(\S*)`),
	regexp.MustCompile(`(fetch|XMLHttpRequest|WebSocket|EventSource|sendBeacon|import)(\()([^)]*)`),
}

func TestThePageLoadsNothing(t *testing.T) {
	for name, session := range map[string]func() (results.Results, []results.Run){
		"usual": func() (results.Results, []results.Run) { return fake(2) }, "damaged": damaged,
	} {
		page := rendered(t, first(session()), second(session()))
		for _, r := range loads {
			for _, m := range r.FindAllStringSubmatch(page, -1) {
				if !strings.HasPrefix(m[3], "#") && m[3] != "data:," {
					t.Errorf("%s: %s would load %q", name, m[0], m[3])
				}
			}
		}
		if !strings.Contains(page, `content="default-src 'none';`) {
			t.Errorf("%s: the page has no content security policy", name)
		}
	}
}

func first(res results.Results, _ []results.Run) results.Results { return res }
func second(_ results.Results, runs []results.Run) []results.Run { return runs }

func TestAHundredRunsStaySmall(t *testing.T) {
	res, runs := fake(4)
	if len(runs) < 100 {
		t.Fatalf("%d runs", len(runs))
	}
	page := rendered(t, res, runs)
	if len(page) >= pageLimit {
		t.Errorf("%d runs make a page of %d bytes", len(runs), len(page))
	}
	if !strings.Contains(page, "Every run, as it was made") {
		t.Error("the page leaves out what it has room for")
	}
}

func TestAThousandRunsStaySmall(t *testing.T) {
	res, runs := fake(32)
	page := rendered(t, res, runs)
	if len(page) >= pageLimit {
		t.Errorf("%d runs make a page of %d bytes", len(runs), len(page))
	}
	if !strings.Contains(page, "are in runs.jsonl, beside this file") || !strings.Contains(page, "<h2>Latency</h2>") {
		t.Error("the page does not say where the runs are, or leaves out more than them")
	}
}

func TestEveryDrawingHasWordsAndATable(t *testing.T) {
	for name, page := range map[string]string{"usual": rendered(t, first(fake(2)), second(fake(2))), "sweep": renderedOf(t, ledger.Family{}, first(sweep(2)), second(sweep(2)))} {
		for _, svg := range regexp.MustCompile(`<svg [^>]*>(<title>)?`).FindAllString(page, -1) {
			if !strings.Contains(svg, `aria-hidden="true"`) && !strings.HasSuffix(svg, `role="img"><title>`) {
				t.Errorf("%s: %s has no name", name, svg)
			}
		}
		for _, section := range strings.Split(page, "<section ")[1:] {
			if (strings.Contains(section, `class="chart lines"`) || strings.Contains(section, `class="chart heat"`)) && !strings.Contains(section, "<summary>The same as a table</summary>") {
				t.Errorf("%s: the drawings of %.40s have no table", name, section)
			}
		}
	}
}

func TestTheSamePageTwice(t *testing.T) {
	res, runs := fake(2)
	a := rendered(t, res, runs)
	slices.Reverse(runs)
	slices.SortFunc(runs, func(a, b results.Run) int { return a.Order - b.Order })
	if rendered(t, res, runs) != a {
		t.Error("the same results make two different pages")
	}
}

func TestHostileTextIsEscaped(t *testing.T) {
	res, runs := damaged()
	page := rendered(t, res, runs)
	for _, raw := range []string{`<script>alert`, `<img src=x`, `"><script`, "\x1b"} {
		if strings.Contains(page, raw) {
			t.Errorf("the page contains %q", raw)
		}
	}
	if strings.Count(page, "<script>") != 1 || strings.Count(page, "</style>") != 1 {
		t.Error("the page has more than its own script and style")
	}
	for _, opts := range []Options{{}, {Color: true}} {
		text := summed(t, res, runs, opts)
		if strings.Contains(text, "\x1b[31m\n") || !opts.Color && strings.Contains(text, "\x1b") {
			t.Errorf("with %+v a recorded text reaches the terminal as a control sequence", opts)
		}
	}
}

func TestAPartialResultIsSaidLoudly(t *testing.T) {
	res, runs := damaged()
	page, text := rendered(t, res, runs), summed(t, res, runs, Options{})
	if !strings.Contains(page, `<div class="banner" role="alert"`) || !strings.Contains(page, "nterrupted by Ctrl-C") {
		t.Error("the page has no banner")
	}
	if strings.Count(text, "nterrupted by Ctrl-C") != 2 || !strings.Contains(text, "PARTIAL RESULT") {
		t.Error("the summary does not say it at its head and its foot")
	}
	for name, out := range map[string]string{"page": page, "summary": text} {
		for _, want := range []string{"memory cap of 256 MiB", "3 of 3 runs", "port in use"} {
			if !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
				t.Errorf("the %s does not say %q", name, want)
			}
		}
	}
	res.Partial = ""
	if strings.Contains(rendered(t, res, runs), `class="banner"`) || strings.Contains(strings.ToLower(summed(t, res, runs, Options{})), "partial result") {
		t.Error("a whole result is called partial")
	}
}

func TestEveryVerdictCitesItsFigures(t *testing.T) {
	res, runs := fake(3)
	page, text := rendered(t, res, runs), summed(t, res, runs, Options{Width: 140})
	var wants []string
	for _, c := range res.Claims {
		wants = append(wants, c.ID, sentence(c.Title), c.Published)
		for _, a := range c.Answers {
			wants = append(wants, a.Part, sentence(a.Title), a.Setup, answer{Answer: a}.Interval(), sentence(a.Why), ruleWords(a))
		}
	}
	wants = append(wants, "Goals of our own", "for comparison", "6 more repeats settle it", "at the edge", "a figure is missing", "margin ± 3 %",
		"published 1.26–1.35x", "outside 0.9–1.1x", "at most 7 s", "Medians behind it: naive goodput 1,130, workerpool goodput 256 (as published, low load).",
		"Revision", "0123456789ab", "judged 1 time before", "1 of 93 runs: other processes used up to 23 %", "sustained 20000, contestant all, loads low high", "sustained 20000 instead of 50000")
	for _, want := range wants {
		for name, out := range map[string]string{"page": html.UnescapeString(page), "summary": text} {
			if !strings.Contains(words(out), words(want)) {
				t.Errorf("in the %s %q is missing", name, want)
			}
		}
	}
	for _, link := range regexp.MustCompile(`href="#([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if !strings.Contains(page, `id="`+link[1]+`"`) {
			t.Errorf("the page points to #%s, which is not there", link[1])
		}
	}
}

// words are a text without its lines and capitals.
func words(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), " ")) }

func TestOddResultsAreStillShown(t *testing.T) {
	nan := math.NaN()
	odd := []results.Run{
		{}, {Pattern: "x", Outcomes: []results.Outcome{{Kind: "ok", Count: 3}}}, // no histogram
		{Pattern: "x", Repeat: 1, Elapsed: nan, Offered: 5, Process: results.Process{Usage: usage.Usage{GCShare: nan, PeakGoroutines: -1}, ReuseRate: math.Inf(1)}},
		{Pattern: "x", Repeat: 2, Failed: "nothing"}, {Setup: "<&>", Load: "\x00", Pattern: "é", Elapsed: 1e-300, Offered: 1 << 63},
	}
	claims := []results.Claim{{}, {ID: "H1", Answers: []results.Answer{{Repeats: 3, Measured: nan, Low: nan, High: nan, Floor: nan}, {Rule: judge.Outside(math.Inf(-1), 3), Repeats: 1, Floor: math.Inf(1), Published: []float64{nan}}}},
		{ID: "X", Verdict: "unheard of", Answers: []results.Answer{{Unit: "x", Repeats: 1, Measured: math.Inf(1), Rule: judge.Between(nan, 0), Published: []float64{2, 1}}}}}
	for _, fam := range []ledger.Family{{}, fakeFamily, {ID: "G7", Columns: []ledger.Column{{Key: "cpu_us", Name: "time"}}, Stacks: ledger.Stacks{Axis: "µs", Total: ledger.Column{Key: "cpu_us"}, Parts: []ledger.StackPart{{Key: "floor_us", Name: "floor", Class: "s0"}}}}} {
		for _, res := range []results.Results{{}, {Claims: claims, Command: []string{"it's", ""}, Demos: []results.Demo{{}}}} {
			for _, runs := range [][]results.Run{nil, odd} {
				page := renderedOf(t, fam, res, runs)
				if bad := regexp.MustCompile(`="[^"]*(NaN|Inf)[^"]*[0-9 "]`).FindString(page); bad != "" {
					t.Errorf("a drawing contains %s", bad)
				}
				summedOf(t, fam, res, runs, Options{Width: 1})
			}
		}
	}
}

// A run that was offered nothing once stopped the page: its row had no repeats
// to show the spread of.
func TestALoadThatOfferedNothingIsStillShown(t *testing.T) {
	runs := []results.Run{
		{Setup: "real", Load: "low", Pattern: "naive", Elapsed: 1},
		{Setup: "real", Load: "low", Pattern: "limiter", Elapsed: 1},
	}
	renderedOf(t, ledger.Family{}, results.Results{Schema: results.Schema}, runs)
}

func TestTheSummaryIsAsItWas(t *testing.T) {
	for name, opts := range map[string]Options{"plain_80": {}, "colour_120": {Color: true, Width: 120, Dir: "spillway-results"}} {
		res, runs := fake(3)
		if name == "plain_80" {
			res, runs = damaged()
		}
		got := summed(t, res, runs, opts)
		path := filepath.Join("testdata", name+".txt")
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if have, wanted := strings.Split(got, "\n"), strings.Split(string(want), "\n"); !slices.Equal(have, wanted) {
			at := 0
			for at < min(len(have), len(wanted))-1 && have[at] == wanted[at] {
				at++
			}
			t.Errorf("%s differs from line %d on; run go test -update if it is meant:\n%s\nwas\n%s", name, at+1, have[at], wanted[at])
		}
	}
}

func TestTheSummaryKeepsToTheWidth(t *testing.T) {
	res, runs := fake(2)
	for _, width := range []int{60, 80, 100, 140} {
		for line := range strings.Lines(summed(t, res, runs, Options{Width: width})) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width {
				t.Errorf("at width %d a line has %d columns: %s", width, n, line)
			}
		}
	}
}

func TestAFileIsNotATerminal(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if opts := For(f); opts.Color {
		t.Error("colour for a file")
	}
}

func TestWriteIsAllOrNothing(t *testing.T) {
	dir := t.TempDir()
	res, runs := fake(1)
	if err := Write(dir, fakeFamily, res, runs); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{results.ResultsFile, results.ReportFile} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	empty := t.TempDir()
	res.Claims[0].Answers[0].Measured = math.Inf(1) // JSON cannot hold it
	if err := Write(empty, fakeFamily, res, runs); err == nil {
		t.Error("no error for results that cannot be stored")
	}
	if entries, _ := os.ReadDir(empty); len(entries) != 0 {
		t.Errorf("half a report was written: %v", entries)
	}
}

func TestAWriterThatFailsIsReported(t *testing.T) {
	res, runs := fake(1)
	r, w := io.Pipe()
	r.Close()
	if err := Terminal(w, fakeFamily, res, runs, Options{}); err == nil {
		t.Error("no error")
	}
}
