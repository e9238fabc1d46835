package report

import (
	"bytes"
	"flag"
	"html"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/judge"
	"github.com/spillway-go/spillway/load/usage"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func rendered(t *testing.T, fam ledger.Family, res results.Results, runs []results.Run) string {
	t.Helper()
	text, err := page(fam, res, runs)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func summed(t *testing.T, fam ledger.Family, res results.Results, runs []results.Run, opts Options) string {
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

func TestEveryPageStandsAlone(t *testing.T) {
	within, links, svgs := regexp.MustCompile(` id="([^"]*)"`), regexp.MustCompile(`href="#([^"]*)"`), regexp.MustCompile(`<svg [^>]*>(<title>)?`)
	for name, page := range pages(t) {
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
		ids := map[string]bool{}
		for _, m := range within.FindAllStringSubmatch(page, -1) {
			if ids[m[1]] {
				t.Errorf("%s: two elements are called %s", name, m[1])
			}
			ids[m[1]] = true
		}
		for _, m := range links.FindAllStringSubmatch(page, -1) {
			if !ids[m[1]] {
				t.Errorf("%s points to #%s, which is not there", name, m[1])
			}
		}
		for _, svg := range svgs.FindAllString(page, -1) {
			if !strings.Contains(svg, `aria-hidden="true"`) && !strings.HasSuffix(svg, `role="img"><title>`) {
				t.Errorf("%s: %s has no name", name, svg)
			}
		}
		for _, section := range strings.Split(page, "<section ")[1:] {
			if strings.Contains(section, `class="chart lines`) && !strings.Contains(section, "<summary>The same as a table</summary>") {
				t.Errorf("%s: the drawings of %.40s have no table", name, section)
			}
		}
	}
}

// pages are one of each kind.
func pages(t *testing.T) map[string]string {
	session, err := sessionPage(together(3))
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"usual": rendered(t, fakeFamily, first(fake(2)), second(fake(2))), "damaged": rendered(t, fakeFamily, first(damaged()), second(damaged())),
		"sweep": rendered(t, ledger.Family{}, first(sweep(2)), second(sweep(2))), "session": session,
	}
}

func first(res results.Results, _ []results.Run) results.Results { return res }
func second(_ results.Results, runs []results.Run) []results.Run { return runs }

func TestAThousandRunsStaySmall(t *testing.T) {
	res, runs := fake(32)
	page := rendered(t, fakeFamily, res, runs)
	if len(page) >= pageLimit || !strings.Contains(page, `<svg class="chart lines`) {
		t.Errorf("%d runs make a page of %d bytes", len(runs), len(page))
	}
}

func TestHostileTextIsEscaped(t *testing.T) {
	res, runs := damaged()
	page := rendered(t, fakeFamily, res, runs)
	for _, raw := range []string{`<script>alert`, `<img src=x`, `"><script`, "\x1b"} {
		if strings.Contains(page, raw) {
			t.Errorf("the page contains %q", raw)
		}
	}
	if strings.Count(page, "<script>") != 1 || strings.Count(page, "</style>") != 1 {
		t.Error("the page has more than its own script and style")
	}
	for _, opts := range []Options{{}, {Color: true}} {
		text := summed(t, fakeFamily, res, runs, opts)
		if strings.Contains(text, "\x1b[31m\n") || !opts.Color && strings.Contains(text, "\x1b") {
			t.Errorf("with %+v a recorded text reaches the terminal as a control sequence", opts)
		}
	}
}

func TestAPartialResultIsSaidLoudly(t *testing.T) {
	res, runs := damaged()
	page, text := rendered(t, fakeFamily, res, runs), summed(t, fakeFamily, res, runs, Options{})
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
	if strings.Contains(rendered(t, fakeFamily, res, runs), `class="banner"`) || strings.Contains(strings.ToLower(summed(t, fakeFamily, res, runs, Options{})), "partial result") {
		t.Error("a whole result is called partial")
	}
}

func TestASessionOfWhichMostIsDisturbedSaysSoFirst(t *testing.T) {
	for _, c := range []struct {
		of   int // every so many runs are disturbed
		want bool
	}{{0, false}, {2, false}, {1, true}} {
		res, runs := fake(2)
		for i := range runs {
			if runs[i].Disturbed = 0; c.of > 0 && i%c.of == 0 {
				runs[i].Disturbed = .25
			}
		}
		const said = "Repeat the session on a quiet machine."
		page, text := rendered(t, fakeFamily, res, runs), strings.Join(strings.Fields(summed(t, fakeFamily, res, runs, Options{})), " ")
		if strings.Contains(page, said) != c.want || strings.Contains(text, said) != c.want {
			t.Errorf("every %dth run disturbed: said on the page %v, in the summary %v", c.of, strings.Contains(page, said), strings.Contains(text, said))
		}
		if c.want && (!strings.HasPrefix(text, "A DISTURBED SESSION: Other processes disturbed 56 of 56 runs") || strings.Index(page, said) > strings.Index(page, "<header")) {
			t.Errorf("it is not said first: %.200s", text)
		}
		res.Experiment, res.Partial = "H", ""
		whole, err := sessionPage([]ledger.Family{fakeFamily}, results.Session{Parts: []results.Results{res}}, map[string][]results.Run{"H": runs})
		if err != nil || strings.Contains(whole, said) != c.want {
			t.Errorf("every %dth run disturbed: said of the whole %v, %v", c.of, strings.Contains(whole, said), err)
		}
	}
}

func TestEveryVerdictCitesItsFigures(t *testing.T) {
	res, runs := fake(3)
	page, text := rendered(t, fakeFamily, res, runs), summed(t, fakeFamily, res, runs, Options{Width: 140})
	var wants []string
	for _, c := range res.Claims {
		wants = append(wants, c.ID, sentence(c.Title), c.Published)
		for _, a := range c.Answers {
			wants = append(wants, a.Part, sentence(a.Title), a.Setup, answer{Answer: a}.Interval(), sentence(a.Why), ruleWords(a))
		}
	}
	wants = append(wants, "Goals of our own", "for comparison", "6 more repeats settle it", "at the edge", "a figure is missing", "margin ± 3 %",
		"published 1.26–1.35x", "outside 0.9–1.1x", "at most 7 s", "Medians behind it: naive goodput 1,130 (as published, low load), workerpool goodput 256 (as published, low load).",
		"Revision", "0123456789ab", "judged 1 time before", "1 of 84 runs: other processes used up to 23 %", "sustained 20000, contestant all, loads low high", "sustained 20000 instead of 50000",
		"Which pattern for batch jobs?", "contradicted", "H2/refused")
	for _, want := range wants {
		for name, out := range map[string]string{"page": html.UnescapeString(page), "summary": text} {
			if !strings.Contains(words(out), words(want)) {
				t.Errorf("in the %s %q is missing", name, want)
			}
			if strings.Contains(out, "Which pattern for internal tools?") {
				t.Errorf("the %s advises on what was not judged", name)
			}
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
		{Pattern: "x", Repeat: 2, Failed: "nothing"}, {Setup: "real", Load: "low", Pattern: "naive", Elapsed: 1}, // it was offered nothing
		{Setup: "<&>", Load: "\x00", Pattern: "é", Elapsed: 1e-300, Offered: 1 << 63},
	}
	claims := []results.Claim{{}, {ID: "H1", Answers: []results.Answer{{Repeats: 3, Measured: nan, Low: nan, High: nan, Floor: nan}, {Rule: judge.Outside(math.Inf(-1), 3), Repeats: 1, Floor: math.Inf(1), Published: []float64{nan}}}},
		{ID: "X", Verdict: "unheard of", Answers: []results.Answer{{Unit: "x", Repeats: 1, Measured: math.Inf(1), Rule: judge.Between(nan, 0), Published: []float64{2, 1}}}}}
	for _, fam := range []ledger.Family{{}, fakeFamily, {ID: "G7", Columns: []ledger.Column{{Key: "cpu_us", Name: "time"}}, Steps: ledger.Steps{Of: "µs", Parts: []ledger.Column{{Key: "floor_us", Name: "floor"}}}}} {
		for _, res := range []results.Results{{}, {Claims: claims, Command: []string{"it's", ""}}} {
			for _, runs := range [][]results.Run{nil, odd} {
				page := rendered(t, fam, res, runs)
				if bad := regexp.MustCompile(`="[^"]*(NaN|Inf)[^"]*[0-9 "]`).FindString(page); bad != "" {
					t.Errorf("a drawing contains %s", bad)
				}
				summed(t, fam, res, runs, Options{Width: 1})
				if _, err := sessionPage(nil, results.Session{Parts: []results.Results{res}}, map[string][]results.Run{"": runs}); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

func TestTheSummaryIsAsItWas(t *testing.T) {
	const path = "testdata/plain_80.txt"
	got := summed(t, fakeFamily, first(damaged()), second(damaged()), Options{})
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); err != nil || got != string(want) {
		t.Errorf("%v; look at the difference and run go test -update if it is meant:\n%s", err, got)
	}
	if colour := summed(t, fakeFamily, first(fake(1)), second(fake(1)), Options{Color: true, Dir: "spillway-results"}); !strings.Contains(colour, "\x1b[32m✓ HOLDS\x1b[0m") || !strings.Contains(colour, "spillway-results/report.html") {
		t.Error(colour)
	}
}

func TestTheSummaryKeepsToTheWidth(t *testing.T) {
	res, runs := fake(2)
	for _, width := range []int{60, 80, 100, 140} {
		for line := range strings.Lines(summed(t, fakeFamily, res, runs, Options{Width: width})) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width {
				t.Errorf("at width %d a line has %d columns: %s", width, n, line)
			}
		}
	}
}

func TestWriteIsAllOrNothing(t *testing.T) {
	res, runs := fake(1)
	empty := t.TempDir()
	res.Claims[0].Answers[0].Measured = math.Inf(1) // JSON cannot hold it
	if err := Write(empty, fakeFamily, res, runs); err == nil {
		t.Error("no error for results that cannot be stored")
	}
	if entries, _ := os.ReadDir(empty); len(entries) != 0 {
		t.Errorf("half a report was written: %v", entries)
	}
}
