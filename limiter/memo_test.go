package limiter

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
)

// life performs random steps on a limiter, and records every answer and the counts after
// every step. Without repeats every arrival asks the gate. With held the lock is held
// whenever work ends.
func life(t *testing.T, seed uint64, queue, steps int, repeats, held bool) (answers []string) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(t, 4, queue)
		r := rand.New(rand.NewPCG(seed, 3))
		var running []Permit
		for range steps {
			time.Sleep(time.Duration(r.IntN(3)) * time.Millisecond)
			if r.IntN(4) == 0 && len(running) > 0 {
				i := r.IntN(len(running))
				if held {
					l.lock(l.now())
				}
				running[i].Done(nil)
				if held {
					l.unlock()
				}
				running[i] = running[len(running)-1]
				running = running[:len(running)-1]
			}
			if !repeats {
				l.lock(l.now())
				if l.memos.live.Load() {
					l.memos.forget()
				}
				l.unlock()
			}
			ctx := spillway.WithPriority(t.Context(), spillway.Priority(r.IntN(4)-1))
			if r.IntN(3) > 0 {
				ctx = spillway.WithKind(ctx, fmt.Sprint(r.IntN(1+r.IntN(100))))
			}
			cancel := func() {}
			if r.IntN(3) == 0 {
				ctx, cancel = context.WithTimeout(ctx, time.Duration(r.IntN(60))*time.Millisecond)
			}
			try := l.TryAcquire
			if r.IntN(2) == 0 {
				try = l.Acquire
			}
			p, err := Permit{}, error(nil)
			done := make(chan bool)
			go func() {
				p, err = try(ctx)
				close(done)
			}()
			synctest.Wait()
			select {
			case <-done:
			default: // the caller waits: make room
				for _, q := range running {
					q.Done(nil)
				}
				running = nil
				<-done
			}
			cancel()
			if p != (Permit{}) {
				running = append(running, p)
			}
			s := l.Stats()
			answers = append(answers, fmt.Sprint(reason(err), s.Offered, s.Admitted, s.Cancelled, s.RejectedBy))
		}
		finish(t, l, running...)
		var repeated uint64
		for i := range l.memos.count {
			repeated += l.memos.count[i].Load()
		}
		if repeats != (repeated > 0) {
			t.Fatalf("%d refused without asking", repeated)
		}
	})
	return answers
}

func TestRefusingWithoutTheLockDecidesAsTheGateWould(t *testing.T) { decidesAsTheGate(t, 2, 800) }

// decidesAsTheGate compares equal lives with and without repeated rejections.
func decidesAsTheGate(t *testing.T, seeds uint64, steps int) {
	for seed := range seeds {
		for _, queue := range []int{-1, 2, 50} {
			with, without := life(t, seed, queue, steps, true, seed%2 == 0), life(t, seed, queue, steps, false, false)
			for i := range with {
				if with[i] != without[i] {
					t.Fatalf("seed %d, queue %d, step %d: %s; asked every time: %s", seed, queue, i, with[i], without[i])
				}
			}
		}
	}
}
