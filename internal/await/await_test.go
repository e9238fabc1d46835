package await

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A failing is a test that notes what it fails with.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Helper() {}

func (f *failing) Fatalf(format string, args ...any) {
	f.said = format
	runtime.Goexit()
}

func TestAnEventIsWaitedForAsLongAsItTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		True(t, "almost the limit passes", func() bool { return time.Since(began) > Limit-time.Second })

		values := make(chan int)
		go func() {
			time.Sleep(Limit - time.Second)
			values <- 7
		}()
		if v := Receive(t, "a value", values); v != 7 {
			t.Errorf("received %d, want 7", v)
		}
		close(values)
		if v := Receive(t, "the end", values); v != 0 {
			t.Errorf("received %d from a closed channel, want 0", v)
		}
	})
}

func TestAnEventThatNeverComesFailsTheTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, wait := range map[string]func(testing.TB){
			"True":    func(t testing.TB) { True(t, "never", func() bool { return false }) },
			"Receive": func(t testing.TB) { Receive(t, "never", make(chan int)) },
		} {
			f := &failing{TB: t}
			began := time.Now()
			done := make(chan struct{})
			go func() {
				defer close(done)
				wait(f)
			}()
			<-done
			if !strings.Contains(f.said, "waited") {
				t.Errorf("%s did not fail", name)
			}
			if took := time.Since(began); took < Limit || took > Limit+time.Second {
				t.Errorf("%s failed after %v, want %v", name, took, Limit)
			}
		}
	})
}

func TestADeadlinePassesWhenTheTestSaysSo(t *testing.T) {
	ctx, pass := Deadline(t.Context())
	if _, ok := ctx.Deadline(); !ok || ctx.Err() != nil {
		t.Fatalf("a context without a deadline, or ended: %v", ctx.Err())
	}
	child, cancel := context.WithCancel(ctx)
	defer cancel()
	pass()
	<-child.Done()
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) || !errors.Is(child.Err(), context.DeadlineExceeded) {
		t.Errorf("ended with %v, and its child with %v, want deadline exceeded", ctx.Err(), child.Err())
	}

	parent, leave := context.WithCancel(t.Context())
	ctx, pass = Deadline(parent)
	defer pass()
	leave()
	<-ctx.Done()
	if ctx.Err() != context.Canceled {
		t.Errorf("ended with %v where its parent was cancelled", ctx.Err())
	}
}
