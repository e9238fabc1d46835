package fanout

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A branch may keep its context for any time: whatever later calls do, the context continues to
// belong to its own call.
func TestAContextThatABranchKeptMeansItsOwnCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kept []context.Context
		f := made(t, Config{Mode: Parallel}, Required("a", func(ctx context.Context, id int) (int, error) {
			kept = append(kept, ctx)
			if id%2 == 1 {
				return 0, errDown
			}
			return id, nil
		}, func(*int, int) {}))
		for id := range 20 {
			_, _ = f.Do(context.WithValue(t.Context(), requestKey{}, id), id)
		}
		synctest.Wait()
		for id, ctx := range kept {
			early := ctx.Err() // before any other method of ctx was called
			select {
			case <-ctx.Done():
			default:
				t.Errorf("call %d is over, its context is not", id)
			}
			if early != context.Canceled || ctx.Err() != early || ctx.Value(requestKey{}) != id {
				t.Errorf("call %d: %v, then %v, of call %v", id, early, ctx.Err(), ctx.Value(requestKey{}))
			}
			if failed := errors.Is(context.Cause(ctx), errDown); failed != (id%2 == 1) {
				t.Errorf("call %d: the cause is %v", id, context.Cause(ctx))
			}
		}
	})
}

func TestAnEndedContextStaysAsItEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, want := range map[string]error{"the call ended first": context.Canceled, "the caller's deadline did": context.DeadlineExceeded} {
			parent, cancel := context.WithTimeout(t.Context(), ms)
			defer cancel()
			c := &callContext{parent: parent}
			if want == context.DeadlineExceeded {
				time.Sleep(2 * ms)
			}
			c.end(context.Canceled)
			early := c.Err()
			time.Sleep(2 * ms)
			c.end(errDown)
			<-c.Done()
			if late := c.Err(); early != want || late != want || context.Cause(c) != want {
				t.Errorf("%s: %v, later %v because of %v", name, early, late, context.Cause(c))
			}
		}
	})
}

// racing is a parent that ends during its first Err call, which returns nil.
type racing struct {
	context.Context
	ended   bool
	between func()
}

func (r *racing) Err() error {
	if r.ended {
		return context.DeadlineExceeded
	}
	r.ended = true
	r.between()
	return nil
}

// A branch saw its caller's deadline pass while the call ended. A moment later the branch saw the
// end of the call: two errors of one context.
func TestAContextKeepsTheErrorThatABranchSaw(t *testing.T) {
	c := &callContext{}
	var seen error
	c.parent = &racing{context.Background(), false, func() { seen = c.Err() }}
	c.end(errDown)
	if seen != context.DeadlineExceeded || c.Err() != seen {
		t.Errorf("it ended with %v, and then with %v", seen, c.Err())
	}
}
