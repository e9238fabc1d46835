package spillway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPrioritiesAreOrderedAndTravelWithTheContext(t *testing.T) {
	if !slices.IsSorted([]Priority{Low, Normal, High, Critical}) || Normal != 0 {
		t.Fatal("order")
	}
	ctx := context.Background()
	if PriorityFrom(ctx) != Normal {
		t.Fatal("a context that says nothing is not Normal")
	}
	ctx = WithPriority(WithPriority(ctx, Critical), Low)
	if PriorityFrom(ctx) != Low {
		t.Fatal("the innermost does not win")
	}
	for p, want := range map[Priority]string{Low: "low", Normal: "normal", High: "high", Critical: "critical", 9: "priority(9)"} {
		if p.String() != want {
			t.Errorf("%d is called %q", p, p)
		}
	}
}

func TestTheContextCarriesTheCostBesideThePriority(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	if CostFrom(ctx) != 0 {
		t.Fatal("a context that says nothing has a cost")
	}
	ctx = WithPriority(WithCost(WithPriority(ctx, High), 7), Low)
	if CostFrom(ctx) != 7 || PriorityFrom(ctx) != Low {
		t.Fatal(CostFrom(ctx), PriorityFrom(ctx))
	}
	if ctx := WithCost(ctx, 3); CostFrom(ctx) != 3 || PriorityFrom(ctx) != Low {
		t.Fatal(CostFrom(ctx), PriorityFrom(ctx))
	}
	for n, want := range map[int]int{-5: 1, 0: 1, math.MaxInt: math.MaxInt32} {
		if got := CostFrom(WithCost(ctx, n)); got != want {
			t.Errorf("a cost of %d is %d, want %d", n, got, want)
		}
	}
	type key struct{}
	child, stop := context.WithTimeout(context.WithValue(ctx, key{}, 1), time.Hour)
	defer stop()
	cancel()
	<-child.Done() // it is a context like any other
	if child.Err() != context.Canceled || child.Value(key{}) != 1 || CostFrom(child) != 7 || WithPriority(child, High).Value(key{}) != 1 {
		t.Error(child.Err(), CostFrom(child))
	}
}

func TestAllocsOfACarriedWord(t *testing.T) {
	ctx := context.Background()
	if n := testing.AllocsPerRun(100, func() { ctx = WithPriority(context.Background(), High) }); n > 1 {
		t.Errorf("%v allocations to say it", n)
	}
	if n := testing.AllocsPerRun(100, func() { _ = PriorityFrom(ctx) + Priority(CostFrom(ctx)) }); n > 0 {
		t.Errorf("%v allocations to read it", n)
	}
}

func FuzzPriorityFromText(f *testing.F) {
	for _, text := range []string{"low", "NORMAL", "High", "critical", "", "0", "-1", "priority(9)", " low", "lоw"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var p, again Priority
		if err := p.UnmarshalText([]byte(text)); err != nil {
			if p != Normal || len(err.Error()) > 200 {
				t.Errorf("%v: %v", p, err)
			}
			return
		}
		if err := again.UnmarshalText([]byte(p.String())); err != nil || again != p || p < Low || p > Critical || len(text) < 3 {
			t.Errorf("%q is %v, that is %v, %v", text, p, again, err)
		}
	})
}

func TestPrioritiesFromText(t *testing.T) {
	for text, want := range map[string]Priority{"low": Low, "Normal": Normal, "HIGH": High, "critical": Critical} {
		var p Priority
		if err := p.UnmarshalText([]byte(text)); err != nil || p != want {
			t.Errorf("%q is %v, %v", text, p, err)
		}
	}
	for _, text := range []string{"", "1", "-1", "priority(9)", "highest"} {
		var p Priority
		if err := p.UnmarshalText([]byte(text)); err == nil || p != Normal {
			t.Errorf("%q is %v", text, p)
		}
	}
}

// Statistics once had numbers for keys in JSON, which say nothing to a reader.
func TestPrioritiesAndReasonsAreNamesInJSON(t *testing.T) {
	type figures struct {
		ByPriority map[Priority]int
		ByReason   map[Reason]int
		One        Priority
		Last       Reason
	}
	all := figures{ByPriority: map[Priority]int{}, ByReason: map[Reason]int{}, One: Low, Last: ReasonClosed}
	for p := Low; p <= Critical; p++ {
		all.ByPriority[p] = int(p) + 10
	}
	for _, r := range Reasons() {
		all.ByReason[r] = int(r)
	}
	text, err := json.Marshal(all)
	if err != nil || !strings.Contains(string(text), `"critical":12`) || !strings.Contains(string(text), `"queue_full":1`) || !strings.Contains(string(text), `"Last":"closed"`) {
		t.Errorf("%s, %v", text, err)
	}
	var back figures
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back, all) {
		t.Errorf("%+v, %v", back, err)
	}
	for _, unknown := range []string{"", "urgent", "priority(9)", "reason(0)", "Queue_Full"} {
		p, r := High, ReasonMemory
		if p.UnmarshalText([]byte(unknown)) == nil || r.UnmarshalText([]byte(unknown)) == nil || p != High || r != ReasonMemory {
			t.Errorf("%q was taken: %v, %v", unknown, p, r)
		}
	}
}

func TestARejectionMatchesErrRejectedAlsoWhenWrapped(t *testing.T) {
	var err error = &Rejection{Reason: ReasonSignal, Cause: "db_pool_wait", RetryAfter: 2 * time.Second}
	err = fmt.Errorf("lookup: %w", err)
	rej, ok := errors.AsType[*Rejection](err)
	if !errors.Is(err, ErrRejected) || !ok || rej.Reason != ReasonSignal {
		t.Fatal(err)
	}
	if got, want := rej.Error(), "spillway: rejected: signal (db_pool_wait), retry after 2s"; got != want {
		t.Fatalf("%q, want %q", got, want)
	}
	if errors.Is(errors.New("other"), ErrRejected) {
		t.Fatal("everything is a rejection")
	}
}

func TestEveryReasonHasItsOwnName(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Reasons() {
		if name := r.String(); name == "" || seen[name] {
			t.Errorf("reason %d is called %q", r, name)
		} else {
			seen[name] = true
		}
	}
	if len(seen) != 11 || Reason(0).String() != "reason(0)" || Reason(99).String() != "reason(99)" {
		t.Fatalf("%d reasons", len(seen))
	}
}

func TestDrainAndPanicErrorsUnwrap(t *testing.T) {
	if err := error(&DrainError{Dropped: 1, Running: 2, Cause: context.DeadlineExceeded}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	if err := error(&PanicError{Value: boom}); !errors.Is(err, boom) {
		t.Fatal(err)
	}
	if errors.Unwrap(&PanicError{Value: "text"}) != nil {
		t.Fatal("a text unwraps")
	}
}
