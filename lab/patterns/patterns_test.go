package patterns

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/loadgen"
)

func TestScalingCutsRequestsNeverClientsOrWorkers(t *testing.T) {
	part, full := Defaults(), Defaults()
	full.Full = true
	published := map[string][2]int{Low: {1_000, 100}, High: {10_000, 1_000}, Sustained: {50_000, 500}}
	for name, sizes := range published {
		for _, setup := range []string{Published, Real} {
			for _, pattern := range contestants {
				f, p := full.load(name, setup, pattern), part.load(name, setup, pattern)
				if f.requests != sizes[0] || f.clients != sizes[1] || f.workers != 20 {
					t.Errorf("full %s %s %s: %+v, published %v", setup, name, pattern, f, sizes)
				}
				if p.requests > f.requests || p.clients != f.clients || p.workers != f.workers || p.requests%p.clients != 0 {
					t.Errorf("scaled %s %s %s: %+v of %+v", setup, name, pattern, p, f)
				}
			}
		}
	}
	own := Config{Requests: 40, Clients: 8, Workers: 3}
	for _, name := range []string{Low, High, Sustained, Brisk, Reuse, Parked} {
		if l := own.load(name, Real, Naive); l.requests != 40 || l.clients != 8 || l.workers != 3 {
			t.Errorf("%s with own sizes: %+v", name, l)
		}
	}
	if c, err := full.check(); err != nil || c.scaled() != "" {
		t.Errorf("full size says %q, %v", c.scaled(), err)
	}
	if c, err := part.check(); err != nil || !strings.Contains(c.scaled(), "never fewer clients") {
		t.Errorf("scaled says %q, %v", c.scaled(), err)
	}
}

func TestThePlanHasEveryPatternUnderEveryLoadInBothSetups(t *testing.T) {
	plan, err := Classic{Defaults()}.Plan()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[cell]int{}
	for _, c := range plan.Cells {
		if !c.Twin {
			seen[cell{c.Setup, c.Load, c.Pattern}]++
		}
		if c.Setup == Real && c.Beside != "" {
			t.Errorf("%s shares the machine with others", c.Label())
		}
	}
	for _, setup := range []string{Published, Real} {
		for _, load := range []string{Low, High, Sustained} {
			for _, pattern := range contestants {
				if n := seen[cell{setup, load, pattern}]; n != 1 {
					t.Errorf("%s/%s/%s is planned %d times", setup, load, pattern, n)
				}
			}
		}
	}
	if len(plan.Demos) != 3 {
		t.Errorf("%d demonstrations", len(plan.Demos))
	}
}

// run is a made-up run: counts of each kind in a number of seconds.
func run(c cell, repeat int, ok, rejected, failed uint64, seconds float64) results.Run {
	latency := func(n uint64) *histogram.Histogram {
		var h histogram.Histogram
		h.RecordN(75_000_000, n)
		return &h
	}
	return results.Run{
		Setup: c.setup, Load: c.load, Pattern: c.pattern, Repeat: repeat, Elapsed: seconds, Offered: ok + rejected + failed,
		Params: map[string]any{"clients": 1000, "workers": 20, "queue_size": 100, "min_latency_ms": 50.0, "max_latency_ms": 100.0, "error_rate": 0.05},
		Outcomes: []results.Outcome{
			{Kind: "ok", Count: ok, Latency: latency(ok)}, {Kind: "rejected", Count: rejected, Latency: latency(rejected)},
			{Kind: "error", Count: failed, Latency: latency(failed)}},
		Process: results.Process{PeakStoreCalls: 20, ReuseRate: 0.047},
		Extra:   map[string]float64{},
	}
}

func TestVerdictsFollowTheRuns(t *testing.T) {
	// made returns runs like the published ones, with the pool's figures as given.
	made := func(poolSeconds float64, refused uint64) []results.Run {
		var runs []results.Run
		for repeat := range 3 {
			wobble := 1 + 0.002*float64(repeat)
			runs = append(runs,
				run(cell{Published, Low, Naive}, repeat, 950, 0, 50, 0.9*wobble),
				run(cell{Published, Low, WorkerPool}, repeat, 950, 0, 50, poolSeconds),
				run(cell{Published, High, WorkerPool}, repeat, 10_000-refused-60, refused, 60, 4.5*wobble))
		}
		return runs
	}
	like := Classic{}.Judge(made(3.9, 8_800), 1)
	for id, want := range map[string]results.Verdict{"H1": results.Holds, "H2/refused": results.Holds, "H2/goodput": results.Fails, "H2/law": results.Holds} {
		if c := labtest.Claim(t, like, id, "as published"); c.Verdict != want {
			t.Errorf("%s %s, want %s: %s", id, c.Verdict, want, c.Why)
		}
	}
	if why := labtest.Claim(t, like, "H2/goodput", "as published").Why; !strings.Contains(why, "Little's law") || !strings.Contains(why, "20 workers") {
		t.Errorf("the reason does not explain the figure: %s", why)
	}
	unlike := Classic{}.Judge(made(2.0, 500), 1)
	for _, id := range []string{"H1", "H2/refused", "H2/law"} {
		if c := labtest.Claim(t, unlike, id, "as published"); c.Verdict != results.Fails {
			t.Errorf("%s %s from other runs: %s", id, c.Verdict, c.Why)
		}
	}
	for _, c := range like {
		if c.Setup == "for real" && (c.Verdict != results.Inconclusive || !strings.Contains(c.Why, "was not run")) {
			t.Errorf("%s without runs: %s, %s", c.ID, c.Verdict, c.Why)
		}
	}
}

func TestVerdictsSurviveTheWayToDiskAndBack(t *testing.T) {
	var runs, back []results.Run
	for repeat := range 3 {
		runs = append(runs, run(cell{Real, High, WorkerPool}, repeat, 1_140, 8_800, 60, 4.5))
	}
	data, err := json.Marshal(runs)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(Classic{}.Judge(runs, 1), Classic{}.Judge(back, 1)) {
		t.Error("other verdicts from the same runs")
	}
}

func TestBeingKilledIsAnAnswerAndFailingIsNot(t *testing.T) {
	killed, failed := run(cell{Real, High, WorkerPool}, 0, 1, 1, 1, 1), run(cell{Published, High, WorkerPool}, 0, 1, 1, 1, 1)
	killed.Killed, failed.Failed = "killed above the memory cap of 64 MiB after 1s", "connection refused"
	claims := Classic{}.Judge([]results.Run{killed, failed}, 1)
	if c := labtest.Claim(t, claims, "H2/refused", "for real"); !strings.Contains(c.Why, "killed above the memory cap") {
		t.Errorf("killed: %s", c.Why)
	}
	if c := labtest.Claim(t, claims, "H2/refused", "as published"); !strings.Contains(c.Why, "could not be measured: connection refused") {
		t.Errorf("failed: %s", c.Why)
	}
}

func TestH10NeedsMoreThanAThousandASecond(t *testing.T) {
	var runs []results.Run
	for repeat := range 3 {
		for _, pattern := range []string{Optimized, WorkerPool} {
			runs = append(runs, run(cell{Real, Brisk, pattern}, repeat, 900, 0, 0, 1))
		}
	}
	if c := labtest.Claim(t, Classic{}.Judge(runs, 1), "H10", "for real"); c.Verdict != results.Inconclusive || !strings.Contains(c.Why, "more than 1000 requests a second") {
		t.Errorf("%s: %s", c.Verdict, c.Why)
	}
}

func TestLittlesLaw(t *testing.T) {
	if got := littlesLaw(run(cell{}, 0, 1, 0, 0, 1)); math.Abs(got-253.33) > 0.01 {
		t.Errorf("20 workers × 0.95 ÷ 75 ms is %v", got)
	}
}

// An answer about another patient once went unnoticed: only the first error was
// checked, which came from a failing store and looked the same.
func TestAnAnswerAboutAnotherPatientIsNoticedAmongOtherErrors(t *testing.T) {
	j := Job{Patients: 10}
	answers := []func(w http.ResponseWriter){
		func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) },
		func(w http.ResponseWriter) { fmt.Fprintf(w, `{"id":"%s"}`, j.ID(1)) },
		func(w http.ResponseWriter) { fmt.Fprintf(w, `{"id":"%s"}`, j.ID(7)) },
	}
	n := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answers[n](w) }))
	defer srv.Close()
	target, foreign, err := j.httpTarget(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	for i, want := range []struct {
		outcome loadgen.Outcome
		foreign int64
	}{{loadgen.Error, 0}, {loadgen.OK, 0}, {loadgen.Error, 1}} {
		n = i
		if got := target.Do(t.Context(), uint64(i)); got != want.outcome || foreign.Load() != want.foreign {
			t.Errorf("answer %d: %v and %d about another patient, want %v and %d", i, got, foreign.Load(), want.outcome, want.foreign)
		}
	}
}
