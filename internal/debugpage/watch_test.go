package debugpage

import (
	"math"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/internal/inside"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// growing returns the picture of a limiter after n seconds with 10 arrivals each, 4 of them
// refused.
func growing(n int) picture {
	h := new(histogram.Histogram)
	h.RecordN(int64(time.Millisecond), uint64(6*n))
	return picture{open: true, Stats: limiter.Stats{
		Offered: uint64(10 * n), Rejected: uint64(4 * n), Completed: uint64(6 * n),
		RejectedBy: map[spillway.Reason]uint64{spillway.ReasonWaitTooLong: uint64(4 * n)},
		QueueWait:  h, Service: h,
	}}
}

func TestFiguresASecondAreOfTheLastTenSeconds(t *testing.T) {
	at := time.Now()
	w := watch{created: at}
	w.add(at, growing(0))
	if v := viewOf(0, &w, at); !math.IsNaN(v.offered) || v.rejectedBy != nil {
		t.Errorf("a rate from one look: %v", v.offered)
	}
	for i := range 200 {
		at = at.Add(interval + time.Duration(i%3-1)*20*time.Millisecond)
		w.add(at, growing(i))
		if len(w.samples) > kept+4 {
			t.Fatalf("%d samples are kept", len(w.samples))
		}
	}
	v := viewOf(0, &w, at)
	if math.Abs(v.offered-10) > 0.5 || math.Abs(v.rejectedBy[spillway.ReasonWaitTooLong]-4) > 0.2 {
		t.Errorf("%v offered, %v refused a second", v.offered, v.rejectedBy)
	}
	if v.found[0].word != "refusing: wait_too_long" {
		t.Errorf("it is %s", v.found[0].word)
	}
	wait, _ := w.times()
	if n := wait.Count(); n < 6*(kept-4) || n > 6*(kept+4) {
		t.Errorf("%d waits in two minutes", n)
	}
	for range 11 { // no more refusals
		at = at.Add(interval)
		w.add(at, growing(199))
	}
	if v := viewOf(0, &w, at); v.found[0].word != "calm" {
		t.Errorf("it is %s after ten calm seconds", v.found[0].word)
	}
}

func TestALineBreaksWhereNothingCame(t *testing.T) {
	at := time.Now()
	w := watch{created: at}
	for i := range 10 {
		w.add(at.Add(time.Duration(i)*interval), growing(i))
	}
	later := at.Add(60 * interval)
	w.add(later, growing(600))
	line := w.series(func(s, before *sample) float64 {
		if before == nil {
			return math.NaN()
		}
		return float64(s.Offered - before.Offered)
	})
	if len(line) != kept || !math.IsNaN(line[kept-1]) || line[kept-1-51] != 10 || !math.IsNaN(line[kept-1-20]) {
		t.Errorf("line %v", line)
	}
	if wait, _ := w.times(); wait.Count() != 6*600 {
		t.Errorf("%d waits: those after the break are those of the last second", wait.Count())
	}
	w.add(later.Add(time.Hour), growing(700))
	if len(w.samples) != 1 {
		t.Errorf("%d samples after an hour", len(w.samples))
	}
}

// A decision shows that the limiter is older than the page.
func TestAgesOfDecisions(t *testing.T) {
	at := time.Now()
	w := watch{created: at}
	p := picture{Stats: limiter.Stats{Decisions: []limit.Decision{{At: time.Minute}, {At: time.Hour}}}}
	w.add(at, p)
	v := viewOf(0, &w, at.Add(time.Minute))
	if got := []time.Duration{v.age(time.Minute), v.age(time.Hour)}; got[0] != time.Hour || got[1] != time.Minute {
		t.Errorf("ages %v", got)
	}
}

func TestTheWorstIsSaid(t *testing.T) {
	for want, change := range map[string]func(*view){
		"full":                   func(v *view) { v.InFlight = 2 },
		"work waits":             func(v *view) { v.InFlight, v.Queued = 2, 1 },
		"pressed down by memory": func(v *view) { v.Queued, v.Pressure = 1, inside.Pressure{Cap: 1, By: "memory"} },
		"refusing: queue_full": func(v *view) {
			v.Queued, v.rejectedBy = 1, map[spillway.Reason]float64{spillway.ReasonQueueFull: 2, spillway.ReasonQuota: 1}
		},
		"intake closed": func(v *view) { v.open, v.rejectedBy = false, map[spillway.Reason]float64{spillway.ReasonClosed: 1} },
		"off":           func(v *view) { v.Mode = limiter.Off },
	} {
		v := &view{picture: &picture{open: true, Stats: limiter.Stats{Limit: 2}}}
		change(v)
		if got := v.findings()[0].word; got != want {
			t.Errorf("it is %q, want %q", got, want)
		}
	}
}

func TestTheSummaryNamesAFewAndCountsTheRest(t *testing.T) {
	var views []view
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		views = append(views, view{title: name, found: []finding{{mood: "bad", word: "stalled"}}})
	}
	views = append(views, view{title: "f", found: []finding{{mood: "calm", word: "calm"}}}, view{title: "g", found: []finding{{mood: "busy", word: "full"}}})
	if got, want := summary(views), "a, b, c, 2 more: stalled; g: full."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
