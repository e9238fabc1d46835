package debugpage

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/internal/inside"
	"github.com/spillway-go/spillway/internal/pages"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// A reason that somebody adds is explained on the page, in the runbook and in the list of the metrics.
func TestEveryReasonIsExplained(t *testing.T) {
	for _, r := range spillway.Reasons() {
		if meaning(r) == meaning(0) {
			t.Errorf("meaning does not explain %v", r)
		}
		if toDo(r) == "" && r != spillway.ReasonDraining && r != spillway.ReasonClosed {
			t.Errorf("toDo has no advice for %v", r)
		}
		for _, page := range []string{"docs/operate/runbook.md", "docs/operate/metrics.md"} {
			if !strings.Contains(pages.Text(t, page), "`"+r.String()+"`") {
				t.Errorf("%s does not have `%v`", page, r)
			}
		}
	}
}

// seen returns the view of a limiter with 8 slots and two kinds of work, before a change.
func seen() *view {
	quick, slow := new(histogram.Histogram), new(histogram.Histogram)
	quick.RecordN(int64(10*time.Millisecond), 900)
	slow.RecordN(int64(time.Second), 100)
	return &view{
		picture: &picture{open: true, Stats: limiter.Stats{Limit: 8, InFlight: 2}},
		ended:   map[limit.Outcome]uint64{limit.Success: 1000},
		kinds: []kindView{
			{name: "GET /slow", inFlight: 1, ended: 100, service: slow},
			{name: "GET /quick", inFlight: 1, ended: 900, service: quick},
		},
	}
}

func TestEachTroubleHasItsWordsAndNamesTheWork(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*view)
		words  string // of all findings
		advice string // of the first, in part
	}{
		{"calm", func(*view) {}, "calm", ""},
		{"one failure in a hundred", func(v *view) { v.ended[limit.Failed] = 10 }, "calm", ""},
		{"few ends", func(v *view) { v.ended = map[limit.Outcome]uint64{limit.Failed: 3} }, "calm", ""},
		{"all answers are 500", func(v *view) {
			v.ended, v.kinds[1].failed = map[limit.Outcome]uint64{limit.Failed: 500}, 500
		}, "55 % of GET /quick fails", "That is no overload"},
		{"all answers of all kinds are 500", func(v *view) {
			v.ended, v.kinds[0].failed, v.kinds[1].failed = map[limit.Outcome]uint64{limit.Failed: 500}, 100, 900
		}, "work fails, 100 %", "ends in errors or panics. That is no overload"},
		{"one kind became slow", func(v *view) {
			before := new(histogram.Histogram)
			before.RecordN(int64(20*time.Millisecond), 100)
			before.RecordN(int64(time.Second), 200)
			v.kinds[0].before, v.kinds[1].before = before, v.kinds[1].service
		}, "GET /slow became slow", "most of the time of all work is its"},
		{"one answer in twenty is 500, and slots are short", func(v *view) {
			v.ended[limit.Failed], v.rejectedBy = 50, map[spillway.Reason]float64{spillway.ReasonQueueFull: 5}
		}, "refusing: queue_full; work fails, 5 %", "More comes than can be served in time"},
		{"the backend hangs", func(v *view) { v.Stalled, v.InFlight, v.kinds[0].inFlight = true, 8, 7 }, "stalled; full", "that all work shares"},
		{"the backend hangs, and work heeds its deadlines", func(v *view) {
			v.Lost, v.ended, v.kinds[1].lost = 1, map[limit.Outcome]uint64{limit.Deadline: 90, limit.Canceled: 10}, 100
		}, "little ends in time", "runs into its deadline without an answer: GET /quick. Look at what it calls"},
		{"a fifth is refused below", func(v *view) { v.ended[limit.Overload] = 250 }, "work is lost, 20 %", "refused by what it calls"},
		{"callers leave", func(v *view) { v.ended[limit.Canceled] = 1000 }, "work is lost, 50 %", "Callers leave"},
		{"permits leak", func(v *view) { v.Leaks, v.Stalled = make([]limiter.Leak, 2), true }, "permits do not end; stalled", "names the lines"},
		{"an old permit beside much work", func(v *view) { v.Leaks, v.InFlight = make([]limiter.Leak, 1), 7 }, "calm", ""},
		{"processors are short", func(v *view) {
			v.Processors = inside.Processors{Wait: time.Second, Bound: time.Millisecond, Admitted: 0.5}
			v.rejectedBy = map[spillway.Reason]float64{spillway.ReasonScheduler: 5}
		}, "processors are short; refusing: scheduler", "CPU profile"},
		{"the collector works hard", func(v *view) {
			v.collector, v.rejectedBy = 0.42, map[spillway.Reason]float64{spillway.ReasonMemory: 1}
		}, "the garbage collector takes 40 % of the processors; refusing: memory", "heap profile"},
		{"one kind holds the slots", func(v *view) { v.InFlight, v.kinds[0].inFlight = 8, 7 }, "most slots are held by GET /slow; full", "give it a limiter of its own"},
		{"one kind holds the slots, and they suffice", func(v *view) { v.InFlight, v.kinds[0].inFlight = 7, 6 }, "calm", ""},
		{"quick work holds the slots", func(v *view) { v.InFlight, v.kinds[1].inFlight = 8, 7 }, "full", ""},
		{"clients are slow", func(v *view) { v.Paused = 40 }, "clients are slow", "stop nobody else"},
		{"work is parked", func(v *view) { v.Parked, v.kinds[0].parked = 4, 4 }, "work is parked", "usual: GET /slow. Others"},
		{"a dry run", func(v *view) { v.Mode = limiter.DryRun }, "dry run", ""},
		{"a dry run of a dead service", func(v *view) { // the page once showed that all is calm
			v.Mode, v.InFlight, v.Lost, v.ended, v.kinds[1].lost = limiter.DryRun, 1220, 1, map[limit.Outcome]uint64{limit.Deadline: 900}, 900
		}, "little ends in time; dry run", "Switch the mode to enforce"},
		{"a dry run of too much", func(v *view) {
			v.Mode, v.Demand, v.InFlight, v.wouldBy = limiter.DryRun, 3, 20, map[spillway.Reason]float64{spillway.ReasonWaitTooLong: 1}
		}, "dry run, would refuse: wait_too_long", "enforce for a part"},
	} {
		v := seen()
		c.change(v)
		v.lately = v.kinds
		var words []string
		for _, f := range v.findings() {
			words = append(words, f.word)
			if (f.todo == "") != (f.mood == "calm" || f.word == "full") || f.mood == "bad" && f.see == "" {
				t.Errorf("%s: %q says what to do: %q, %q", c.name, f.word, f.todo, f.see)
			}
		}
		if got := strings.ReplaceAll(strings.Join(words, "; "), nbsp, " "); got != c.words {
			t.Errorf("%s: %s, want %s", c.name, got, c.words)
		}
		if got := strings.ReplaceAll(v.findings()[0].todo, nbsp, " "); !strings.Contains(got, c.advice) {
			t.Errorf("%s: %q is not in: %s", c.name, c.advice, got)
		}
	}
}

// Nothing was kept before a page was opened.
func TestWhoOpensThePageAfterTheFactSeesTwoMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := newLimiter(t, limiter.Config{Name: "orders", Law: limit.NewFixed(2)})
		page := New(lim)
		ctx := spillway.WithKind(t.Context(), "GET /orders")
		for range 1000 {
			time.Sleep(100 * time.Millisecond)
			p, err := lim.Acquire(ctx)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(50 * time.Millisecond)
			p.Done(errors.New("failed"))
		}
		body := get(page, "/").Body.String()
		wants(t, textOf(body), "work fails, 100 %", "By kind of work, in the last two minutes", "GET /orders 0 49.9 ms 49.9 ms 100 % – –")
		if n := len(page.watches[0].samples); n < kept-10 {
			t.Errorf("%d samples", n)
		}
	})
}

// A page that nobody has any more is not sampled for: a handler may make one for each request.
func TestAPageThatIsGoneIsNotSampled(t *testing.T) {
	lim := newLimiter(t, limiter.Config{})
	gone := func() weak.Pointer[Page] { return weak.Make(New(lim)) }()
	for i := 0; gone.Value() != nil; i++ {
		if i == 100 {
			t.Fatal("the limiter keeps the page")
		}
		runtime.GC()
	}
}

// runWork runs work n times, each for a time, and ends every k-th with an error.
func runWork(t *testing.T, lim *limiter.Limiter, r limiter.Request, n int, each time.Duration, k int, err error) {
	for i := range n {
		p, _ := lim.AcquireWith(t.Context(), r)
		time.Sleep(each)
		if i%k == 0 {
			p.Done(err)
		}
		p.Done(nil)
	}
}

// Findings of a hostile reader.
func TestThePageDoesNotCryWolfNorSleep(t *testing.T) {
	failed := errors.New("failed")
	headlineAfter(t, "clients leave streams, as they do", "calm", func(lim *limiter.Limiter) {
		runWork(t, lim, limiter.Request{Kind: "GET /events", Long: true}, 60, 500*time.Millisecond, 1, context.Canceled)
	})
	headlineAfter(t, "one caller in eight leaves early", "calm", func(lim *limiter.Limiter) {
		runWork(t, lim, limiter.Request{}, 100, 20*time.Millisecond, 8, context.Canceled)
	})
	headlineAfter(t, "a burst of failures twenty seconds ago", "work fails, 100 %", func(lim *limiter.Limiter) {
		runWork(t, lim, limiter.Request{}, 100, 5*time.Millisecond, 1, failed)
		time.Sleep(20 * time.Second)
	})
	headlineAfter(t, "a failure each seven seconds", "work fails, 100 %", func(lim *limiter.Limiter) {
		runWork(t, lim, limiter.Request{}, 20, 7*time.Second, 1, failed)
	})
	headlineAfter(t, "a report holds one of 32 slots, and nothing else comes", "calm", func(lim *limiter.Limiter) {
		for range 8 {
			runWork(t, lim, limiter.Request{Kind: "GET /"}, 1, 0, 1, nil)
			runWork(t, lim, limiter.Request{Kind: "GET /report"}, 1, 8*time.Second, 1, nil)
		}
		_, _ = lim.AcquireWith(t.Context(), limiter.Request{Kind: "GET /report"})
		time.Sleep(15 * time.Second)
	})
}

// headlineAfter checks the headline of a fixed limiter of 32 slots after work in virtual time.
func headlineAfter(t *testing.T, name, want string, work func(*limiter.Limiter)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		lim := newLimiter(t, limiter.Config{Name: "orders", Law: limit.NewFixed(32)})
		page := New(lim)
		work(lim)
		page.refresh(time.Now(), 0)
		v := viewOf(0, &page.watches[0], time.Now())
		if got := strings.ReplaceAll(v.found[0].word, nbsp, " "); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	})
}

func TestJSONAndTheStreamMayBeReadAtOnce(t *testing.T) {
	lim := newLimiter(t, limiter.Config{})
	page := New(lim)
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for range 50 {
				get(page, "/?format=json")
			}
		})
	}
	readers.Wait()
}
