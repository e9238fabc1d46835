package service

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/loadgen"
)

func TestAnAnswerAfterTheDeadlineIsATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			takes     time.Duration
			says, got loadgen.Outcome
		}{
			{time.Second - 1, loadgen.OK, loadgen.OK},
			{time.Second, loadgen.OK, loadgen.Timeout},
			{time.Second, loadgen.Rejected, loadgen.Rejected},
			{time.Millisecond, loadgen.Error, loadgen.Error},
		} {
			target := loadgen.TargetFunc(func(context.Context, uint64) loadgen.Outcome { time.Sleep(c.takes); return c.says })
			if got := InTime(target, time.Second).Do(t.Context(), 0); got != c.got {
				t.Errorf("%v after %v is %v, want %v", c.says, c.takes, got, c.got)
			}
		}
	})
}

func TestTheCapacityIsTheBestAndTheFirstThatIsNearlyAsGood(t *testing.T) {
	goodput := map[int]uint64{1: 50, 2: 94, 4: 96, 8: 100, 16: 80}
	load := func(n int) (*loadgen.Result, error) {
		res := &loadgen.Result{Elapsed: time.Second}
		res.Outcomes[loadgen.OK].Count = goodput[n]
		return res, nil
	}
	if most, enough, err := Capacity([]int{1, 2, 4, 8, 16}, .95, load); most != 100 || enough != 4 || err != nil {
		t.Errorf("%v with %d clients, %v", most, enough, err)
	}
	clear(goodput)
	if _, _, err := Capacity([]int{1, 2}, .95, load); err == nil {
		t.Error("nothing was answered, and that is no error")
	}
	broken := errors.New("refused")
	if _, _, err := Capacity([]int{1}, .95, func(int) (*loadgen.Result, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

func TestAPauseEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := Pause(t.Context(), time.Second); err != nil || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := Pause(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}
