package limiter

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/limit"
)

// Work that ignores its context returns nil even when its caller has left. Regression: such an
// end was a Success.
func TestDoTellsAnswersThatNobodyWaitsFor(t *testing.T) {
	for name, c := range map[string]struct {
		err      error
		ctx      error // nil: the context has not ended
		want     limit.Outcome
		returned error
	}{
		"answered":                         {nil, nil, limit.Success, nil},
		"answered, and the caller left":    {nil, context.Canceled, limit.Canceled, nil},
		"answered after the deadline":      {nil, context.DeadlineExceeded, limit.Deadline, nil},
		"failed, and the caller left":      {errOther, context.Canceled, limit.Canceled, errOther},
		"failed":                           {errOther, nil, limit.Failed, errOther},
		"refused below, and too late":      {spillway.ErrRejected, context.DeadlineExceeded, limit.Overload, spillway.ErrRejected},
		"a deadline, and the caller left":  {context.DeadlineExceeded, context.Canceled, limit.Deadline, context.DeadlineExceeded},
		"cancelled below, not by its call": {context.Canceled, nil, limit.Canceled, context.Canceled},
	} {
		var got limit.Outcome
		l := configured(t, Config{Law: limit.NewFixed(1), Observer: &Observer{Ended: func(e End) { got = e.Outcome }}})
		cancelled, cancel := context.WithCancel(t.Context())
		late, pass := await.Deadline(t.Context())
		ctx := map[error]context.Context{nil: t.Context(), context.Canceled: cancelled, context.DeadlineExceeded: late}[c.ctx]
		err := l.Do(ctx, func(context.Context) error {
			cancel()
			pass()
			return c.err
		})
		if got != c.want || !errors.Is(err, c.returned) {
			t.Errorf("%s: %v, and %v is returned", name, got, err)
		}
	}
}

var errOther = errors.New("no such patient")

// The load is three times the capacity of ten slots. Callers leave after a second, but handlers
// go on, as most computing handlers do. Regression: the limit stayed at a value with which
// nobody got an answer in time.
func TestHandlersThatDoNotNoticeThatTheirCallerLeft(t *testing.T) {
	soak.WithoutRace(t)
	const (
		slots  = 10
		takes  = 250 * time.Millisecond
		stays  = time.Second
		runs   = 60 * time.Second
		counts = 20 * time.Second // from here on
	)
	good := 0.0
	for seed := range uint64(3) {
		synctest.Test(t, func(t *testing.T) {
			l := configured(t, Config{})
			r := rand.New(rand.NewPCG(seed, 1))
			backend := make(chan struct{}, slots)
			var answered atomic.Int64
			var all sync.WaitGroup
			began := time.Now()
			for time.Since(began) < runs {
				time.Sleep(time.Duration(r.ExpFloat64() * float64(takes) / slots / 3))
				arrived := time.Now()
				all.Go(func() {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					defer time.AfterFunc(stays, cancel).Stop()
					err := l.Do(ctx, func(context.Context) error {
						backend <- struct{}{}
						time.Sleep(takes)
						<-backend
						return nil
					})
					if err == nil && time.Since(arrived) < stays && arrived.Sub(began) >= counts {
						answered.Add(1)
					}
				})
			}
			all.Wait()
			good += float64(answered.Load()) / ((runs - counts).Seconds() * slots / takes.Seconds()) / 3
		})
	}
	if t.Logf("%.2f of what can be done is answered", good); good < 0.5 {
		t.Errorf("%.2f of what can be done is answered", good)
	}
}
