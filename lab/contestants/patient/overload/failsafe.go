package overload

import (
	"context"
	"errors"
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/priority"

	"github.com/spillway-go/spillway"
	plan "github.com/spillway-go/spillway/lab/overload"
)

func newGuard(name string, slots int) (*plan.Guard, error) {
	if name == plan.Failsafe {
		return failsafe(), nil
	}
	return plan.NewGuard(name, slots)
}

// calibrateEvery is how often failsafe-go's prioritizer checks its queue.
const calibrateEvery = 100 * time.Millisecond

// failsafe is the adaptive limiter of failsafe-go with all defaults. It is the
// strongest available adaptive limiter for Go: it is maintained, and the only one
// with priorities. "spillway lab overload" measures it in front of this database.
func failsafe() *plan.Guard {
	prioritizer := adaptivelimiter.NewPrioritizer()
	lim := adaptivelimiter.NewBuilder[any]().BuildPrioritized(prioritizer)
	admit := func(ctx context.Context, fn func(context.Context) error) error {
		level := priority.Low
		if spillway.PriorityFrom(ctx) == spillway.Critical {
			level = priority.VeryHigh
		}
		permit, err := lim.AcquirePermitWithPriority(ctx, level)
		switch {
		case errors.Is(err, adaptivelimiter.ErrExceeded):
			return plan.ErrRefused
		case err != nil:
			return err
		}
		err = fn(ctx)
		if ctx.Err() != nil {
			permit.Drop() // as its own executor does with cancelled work
		} else {
			permit.Record()
		}
		return err
	}
	return &plan.Guard{
		Admit: admit, Limit: lim.Limit,
		Close: prioritizer.ScheduleCalibrations(context.Background(), calibrateEvery),
	}
}
