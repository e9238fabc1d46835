package spillway

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

func TestARejectionMatchesErrRejectedAlsoWhenWrapped(t *testing.T) {
	var err error = &Rejection{Reason: Signal, Cause: "db_pool_wait", RetryAfter: 2 * time.Second}
	err = fmt.Errorf("lookup: %w", err)
	rej, ok := errors.AsType[*Rejection](err)
	if !errors.Is(err, ErrRejected) || !ok || rej.Reason != Signal {
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
	if len(seen) != 10 || Reason(0).String() != "reason(0)" || Reason(99).String() != "reason(99)" {
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
