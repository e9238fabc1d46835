package debugpage

import (
	"encoding/json"
	"encoding/xml"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/internal/inside"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// full returns a picture with a value in every field, and with text in each text field.
func full(text string) picture {
	times := func(all ...time.Duration) *histogram.Histogram {
		h := new(histogram.Histogram)
		for _, d := range all {
			h.Record(int64(d))
		}
		return h
	}
	pressure := inside.Pressure{Signal: text, Level: math.Inf(1), Cap: 3, By: text}
	processors := inside.Processors{Wait: time.Second, Bound: 100 * time.Millisecond, Admitted: 0.3}
	return picture{open: true, Pressure: pressure, Processors: processors, Stats: limiter.Stats{
		Name: text, Mode: limiter.DryRun, Law: text, State: text,
		Decisions: []limit.Decision{{At: time.Second, From: 5, To: 7, Why: text}},
		Limit:     7, InFlight: 6, LongInFlight: 2, OldestInFlight: time.Second, Queued: 4, Demand: math.Inf(1),
		Offered: 120, Admitted: 100, Completed: 94, Rejected: 13, Cancelled: 3,
		RejectedBy:  map[spillway.Reason]uint64{spillway.ReasonQueueFull: 9, spillway.ReasonSignal: 3, 200: 1},
		WouldReject: 11, WouldRejectBy: map[spillway.Reason]uint64{spillway.ReasonWaitTooLong: 11},
		Estimate: text, EstimateUnsafe: true,
		ByPriority: map[spillway.Priority]limiter.PriorityStats{
			spillway.Low:      {Offered: 70, Admitted: 50, Completed: 48, Rejected: 13, Cancelled: 3, WouldReject: 11, Queued: 4, InFlight: 2},
			spillway.Critical: {Offered: 50, Admitted: 50, Completed: 46, InFlight: 4},
		},
		Leaked: 30, Leaks: make([]limiter.Leak, 12),
		QueueWait: times(0, time.Millisecond), Service: times(time.Millisecond, time.Second),
	}}
}

// pageOf returns a page about the slice that pictures points to.
func pageOf(pictures *[]picture) *Page {
	return newPage(len(*pictures), func() []picture { return *pictures })
}

func get(p http.Handler, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
	return w
}

var tag = regexp.MustCompile(`<[^>]*>`)

// textOf returns the words of markup, with one space between them.
func textOf(markup string) string {
	markup = strings.ReplaceAll(markup, "<wbr/>", "")
	_, body, found := strings.Cut(markup, "<body>")
	if !found {
		body = markup
	}
	body, _, _ = strings.Cut(body, "<script>")
	text := strings.NewReplacer("&lt;", "<", "&gt;", ">", "&#34;", `"`, "&#39;", "'", "&amp;", "&", nbsp, " ").Replace(tag.ReplaceAllString(body, " "))
	return strings.Join(strings.Fields(text), " ")
}

func wants(t *testing.T, text string, all ...string) {
	t.Helper()
	for _, want := range all {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in: %s", want, text)
		}
	}
}

func TestThePageSaysWhatALimiterDoes(t *testing.T) {
	p := full("orders")
	p.Mode, p.WouldReject, p.WouldRejectBy, p.Decisions[0].Why = limiter.Enforce, 0, nil, "latency rose"
	p.State, p.Law, p.Leaks[0].Site = "holding: every slot is in use", "adaptive", "main.handle main.go:7"
	pictures := []picture{p}
	w := get(pageOf(&pictures), "/debug/spillway")
	if got := w.Header().Get("Content-Type"); w.Code != http.StatusOK || got != "text/html; charset=utf-8" {
		t.Fatalf("%d %s", w.Code, got)
	}
	wants(t, textOf(w.Body.String()),
		"orders", "Holding: every slot is in use.", "Law: adaptive. Mode: enforce.",
		"In flight 6 of 7 slots, and 2 long", "Waiting 4", "Oldest in flight 1.00 s",
		"critical low waiting 0 4 in flight 4 2 offered 50 70 admitted 50 50 refused 0 13 refused share 0 % 19 % cancelled 0 3",
		"queue_full – 9 as many wait as may wait", "signal – 3 a signal of yours is over its bound", "reason(200) – 1 a lack of capacity",
		"since the limiter was made wait 0 1.00 ms 1.00 ms 1.00 ms work 1.00 ms 1.00 s 1.00 s 1.00 s",
		"5 to 7 just now latency rose", "holds the limit at 3 or below",
		"Permits not ended in time: 30 in all", "main.handle main.go:7", "and 2 more")
}

func TestTheReportOfADryRun(t *testing.T) {
	p := full("orders")
	p.Estimate = "estimate: the backend gets slower with load"
	pictures := []picture{p}
	page := pageOf(&pictures)
	report := func() string {
		page.at = time.Time{} // look again
		_, sections, _ := page.refresh(time.Now(), 0)
		return textOf(sections[3].html)
	}
	wants(t, report(), "Dry run", "9.2 % of the work: 11 of 120",
		"Do not trust this estimate. Estimate: the backend gets slower with load.",
		"low 70 11 16 %", "critical 50 0 0 %", "wait_too_long – 11 the wait was, or would have been, too long")

	pictures[0].Mode, pictures[0].EstimateUnsafe = limiter.Enforce, false
	if got := report(); strings.Contains(got, "trust") {
		t.Errorf("a sound estimate is not trusted: %s", got)
	}
	pictures[0].WouldReject = 0
	if got := report(); got != "Dry run" {
		t.Errorf("without a dry run there is a report: %s", got)
	}
}

func TestThePolicyAllowsThePagesOwnStyleAndScriptAlone(t *testing.T) {
	pictures := []picture{full("orders"), full("search")}
	w := get(pageOf(&pictures), "/")
	got, body := w.Header().Get("Content-Security-Policy"), w.Body.String()
	wants(t, got, "default-src 'none'", "frame-ancestors 'none'")
	if strings.Contains(got, "unsafe") {
		t.Errorf("policy %s", got)
	}
	for _, element := range []string{"style", "script"} {
		_, rest, _ := strings.Cut(body, "<"+element+">")
		content, _, _ := strings.Cut(rest, "</"+element+">")
		wants(t, got, element+"-src '"+hash(content)+"'")
		if strings.Count(body, "<"+element) != 1 {
			t.Errorf("more than one %s", element)
		}
	}
	if found := regexp.MustCompile(`(?i)\s(on\w+|style|src)\s*=|url\(|@import|https?:`).FindString(strings.NewReplacer(script, "", runbook, "").Replace(body)); found != "" {
		t.Errorf("%q on the page", found)
	}
	for name, want := range map[string]string{
		"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
	} {
		if w.Header().Get(name) != want {
			t.Errorf("%s is %q", name, w.Header().Get(name))
		}
	}
}

func TestOnlyGetAndKnownFormats(t *testing.T) {
	page := New()
	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", nil))
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") == "" {
		t.Errorf("POST: %d", w.Code)
	}
	w = httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequest(http.MethodHead, "/?events", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("HEAD of the stream: %d", w.Code)
	}
	if w := get(page, "/?format=<b>"); w.Code != http.StatusBadRequest || strings.Contains(w.Body.String(), "<b>") {
		t.Errorf("unknown format: %d %s", w.Code, w.Body)
	}
	wants(t, textOf(get(page, "/").Body.String()), "No limiter was given to this page.")
}

func TestANilLimiterIsSkipped(t *testing.T) {
	lim := newLimiter(t, limiter.Config{Name: "orders"})
	page := New(nil, lim, nil)
	wants(t, textOf(get(page, "/").Body.String()), "All is calm.", "orders")
	lim.Close()
	var got struct{ Limiters []struct{ Open bool } }
	if err := json.Unmarshal(get(page, "/?format=json").Body.Bytes(), &got); err != nil || len(got.Limiters) != 1 || got.Limiters[0].Open {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestStatsAsJSON(t *testing.T) {
	pictures := []picture{full("orders")}
	pictures[0].Pressure.Level = math.NaN()
	w := get(pageOf(&pictures), "/?format=json")
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("type %s", got)
	}
	var got map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	one := got["limiters"].([]any)[0].(map[string]any)
	for name, want := range map[string]any{
		"name": "orders", "mode": "dryrun", "open": true, "limit": 7., "in_flight": 6., "oldest_in_flight_seconds": 1.,
		"offered": 120., "would_reject": 11., "estimate_unsafe": true, "demand": math.MaxFloat64,
	} {
		if one[name] != want {
			t.Errorf("%s is %v, want %v", name, one[name], want)
		}
	}
	if by := one["rejected_by"].(map[string]any); by["queue_full"] != 9. || by["reason(200)"] != 1. {
		t.Errorf("rejected_by %v", by)
	}
	low, service := one["by_priority"].(map[string]any)["low"].(map[string]any), one["service"].(map[string]any)
	if low["offered"] != 70. || low["in_flight"] != 2. || service["count"] != 2. || service["max_seconds"] != 1. {
		t.Errorf("low %v, service %v", low, service)
	}
}

// A user's observer may panic within Stats: the request ends, the page keeps working.
func TestAPanicOfALimiterDoesNotBlockThePage(t *testing.T) {
	fail := true
	page := newPage(1, func() []picture {
		if fail {
			panic("observer")
		}
		return []picture{full("orders")}
	})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		get(page, "/")
	}()
	fail = false
	wants(t, textOf(get(page, "/").Body.String()), "orders")
}

// Whatever the names and words contain, the markup is well formed, shows them, and has no element
// or attribute from them.
func FuzzTextStaysText(f *testing.F) {
	for _, s := range []string{"", "orders", `"><script>alert(1)</script>`, "' onclick='x", "a\x00b\x1b[31m", "\xff\xfe", "\u202eabc", "</style>", "&lt;", "]]>", "data: x\n\nevent: end\r\n"} {
		f.Add(s)
	}
	names := func(markup string) (tags string, text string, err error) {
		d := xml.NewDecoder(strings.NewReader(markup))
		var seen, words strings.Builder
		for {
			token, err := d.Token()
			if err == io.EOF {
				return seen.String(), words.String(), nil
			} else if err != nil {
				return "", "", err
			}
			switch e := token.(type) {
			case xml.StartElement:
				seen.WriteString("<" + e.Name.Local)
				for _, a := range e.Attr {
					seen.WriteString(" " + a.Name.Local)
				}
			case xml.EndElement:
				seen.WriteString("</" + e.Name.Local)
			case xml.CharData:
				words.Write(e)
			}
		}
	}
	render := func(text string) string {
		pictures := []picture{full(text), full("x")}
		pictures[0].Leaks[0].Site = text
		_, sections, _ := pageOf(&pictures).refresh(time.Now(), 0)
		all := "<body>"
		for _, s := range sections {
			all += s.html
		}
		return all + "</body>"
	}
	want, _, err := names(render("plain"))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, words, err := names(render(text))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if text != "" && got != want {
			t.Fatalf("%q makes other elements", text)
		}
		if !strings.Contains(words, printable(text)) {
			t.Fatalf("%q is not on the page", text)
		}
	})
}

func newLimiter(t *testing.T, cfg limiter.Config) *limiter.Limiter {
	t.Helper()
	lim, err := limiter.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return lim
}
