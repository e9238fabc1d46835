package limit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
)

// TestAnErrorHasOneOutcome holds the order in which errors that match several are
// told apart: the pool and the limiter once had opposite ones.
func TestAnErrorHasOneOutcome(t *testing.T) {
	refused := &spillway.Rejection{Reason: spillway.QueueFull}
	for name, c := range map[string]struct {
		err  error
		want Outcome
	}{
		"nil":                          {nil, Success},
		"deadline":                     {fmt.Errorf("query: %w", context.DeadlineExceeded), Deadline},
		"canceled":                     {fmt.Errorf("query: %w", context.Canceled), Canceled},
		"refused below":                {fmt.Errorf("call: %w", refused), Overload},
		"refused below, then too late": {errors.Join(context.DeadlineExceeded, refused), Overload},
		"deadline and canceled":        {errors.Join(context.Canceled, context.DeadlineExceeded), Deadline},
		"its own":                      {errors.New("no such patient"), Failed},
	} {
		if got := OutcomeOf(c.err); got != c.want {
			t.Errorf("%s: outcome %d, want %d", name, got, c.want)
		}
	}
}

func TestEveryOutcomeHasAName(t *testing.T) {
	seen := map[string]bool{}
	for o := Success; o <= Unknown; o++ {
		seen[o.String()] = true
	}
	if len(seen) != 6 || Outcome(99).String() != "outcome(99)" {
		t.Errorf("%v, and %v", seen, Outcome(99))
	}
}

// An outcome that is added later must not move a law that does not know it.
func TestALawTakesAnOutcomeItDoesNotKnowForUnknown(t *testing.T) {
	eachLaw(t, func(t *testing.T, c contestant) {
		limits := func(as Outcome) (all []int) {
			law := c.build()
			m := newModel(law, 8, 20*time.Millisecond)
			m.outcome = func(r *rand.Rand, o Outcome) Outcome {
				if r.IntN(3) == 0 {
					return as
				}
				return o
			}
			m.until(20*time.Second, func() bool { all = append(all, law.Limit()); return false })
			return all
		}
		if later := limits(99); !slices.Equal(later, limits(Unknown)) {
			t.Error("it is taken for something else")
		}
	})
}
