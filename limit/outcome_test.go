package limit

import (
	"context"
	"errors"
	"fmt"
	"testing"

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
