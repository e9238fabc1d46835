package limiter

import (
	"errors"
	"math"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/inside"
	"github.com/spillway-go/spillway/limit"
)

func TestASignalPressesTheLimitDownAndLetsItGoAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		level := 0.0
		l := configured(t, Config{Law: limit.NewFixed(100), QueueSize: -1, Signals: []Signal{
			Gauge("calm", func() float64 { return 1 }, 10),
			Gauge("pool", func() float64 { return level * 5 }, 5),
		}})
		var permits []Permit
		for range 60 {
			permits = append(permits, acquire(t, l))
		}
		poll := func(n int) {
			for range n {
				time.Sleep(pollEvery)
				if p, err := l.TryAcquire(t.Context()); err == nil {
					p.Done(nil)
				}
			}
		}
		if poll(1); l.Limit() != 100 {
			t.Fatalf("%d without pressure", l.Limit())
		}
		level = 1.2
		if poll(1); l.Limit() != 48 {
			t.Fatalf("%d, want four fifths of what runs", l.Limit())
		}
		_, err := l.TryAcquire(t.Context())
		if rej, _ := errors.AsType[*spillway.Rejection](err); rej == nil || rej.Reason != spillway.ReasonSignal || rej.Cause != "pool" {
			t.Fatalf("%+v", err)
		}
		if p := l.pressure(); p != (inside.Pressure{Signal: "pool", Level: 1.2, Cap: 48, By: "pool"}) {
			t.Fatalf("%+v", p)
		}
		if poll(50); l.Limit() != 1 {
			t.Fatalf("%d, want 1 in the end", l.Limit())
		}
		level = 0.95
		if poll(50); l.Limit() != 1 {
			t.Fatalf("%d: not quite calm yet", l.Limit())
		}
		level = 0.5
		if poll(10); l.Limit() < 5 || l.Limit() > 20 {
			t.Fatalf("%d: a second later, want a gradual release", l.Limit())
		}
		if poll(50); l.Limit() != 100 || l.pressure().Cap != 0 {
			t.Fatalf("%d, want all", l.Limit())
		}
		finish(t, l, permits...)
	})
}

func TestSignalsAreAskedAtMostTenTimesASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		l := configured(t, Config{Law: limit.NewFixed(1), QueueSize: -1, Signals: []Signal{Gauge("g", func() float64 { asked++; return 0 }, 1)}})
		for range 2000 {
			p := acquire(t, l)
			_, _ = l.TryAcquire(t.Context())
			time.Sleep(time.Millisecond)
			p.Done(nil)
		}
		if asked != 21 {
			t.Fatalf("asked %d times in 2 s", asked)
		}
		time.Sleep(time.Hour)
		if asked != 21 {
			t.Fatal("asked while nothing happened")
		}
	})
}

func TestMemoryIsTheLiveShareOfTheMemoryLimit(t *testing.T) {
	for _, c := range []struct{ live, limit, want float64 }{
		{40, 100, 0.5}, {80, 100, 1}, {100, 100, 1.25}, {1 << 40, math.MaxInt64, 0}, {1, 0, 0},
	} {
		m := Memory(0).(*memory)
		m.read = func() (live, limit float64) { return c.live, c.limit }
		if got := m.Level(); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v live of %v: level %v, want %v", c.live, c.limit, got, c.want)
		}
	}
}

func TestMemoryReadsTheRuntime(t *testing.T) {
	before := debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(before)
	runtime.GC()
	s := Memory(0.5)
	if got := s.Level(); got != 0 {
		t.Errorf("level %v without a limit", got)
	}
	debug.SetMemoryLimit(1 << 40)
	if got := s.Level(); got <= 0 || got > 0.1 {
		t.Errorf("level %v of a terabyte", got)
	}
}

func TestRejectionsNameTheSignalThatRules(t *testing.T) {
	pressing := func() Signal {
		m := Memory(0).(*memory)
		m.read = func() (live, limit float64) { return 100, 100 }
		return m
	}
	for _, c := range []struct {
		signals []Signal
		want    spillway.Reason
		cause   string
	}{
		{[]Signal{Gauge("pool", func() float64 { return 1 }, 2), pressing()}, spillway.ReasonMemory, ""},
		{[]Signal{pressing(), Gauge("pool", func() float64 { return 9 }, 2)}, spillway.ReasonSignal, "pool"},
	} {
		l := configured(t, Config{Law: limit.NewFixed(10), QueueSize: -1, Signals: c.signals})
		acquire(t, l) // polls the signals
		for range 2 { // a rejection from the gate, then a repeated one
			_, err := l.Acquire(t.Context())
			rej, _ := err.(*spillway.Rejection)
			if rej == nil || rej.Reason != c.want || rej.Cause != c.cause {
				t.Errorf("want %v %q, got %v", c.want, c.cause, err)
			}
		}
		if by := l.pressure().By; c.cause != "" && by != c.cause {
			t.Errorf("pressed by %q", by)
		}
	}
}

// Regression: a caller that began to wait before the signal pressed did not check whether
// the pressure was over. Without other callers it waited for MaxWait beside free slots and
// was refused.
func TestACallerThatWaitedBeforeTheSignalPressedIsLetInAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pressed atomic.Bool
		l := configured(t, Config{Law: limit.NewFixed(3), Signals: []Signal{Gauge("g", func() float64 { return map[bool]float64{true: 2}[pressed.Load()] }, 1)}})
		hangs, first, second := acquire(t, l), acquire(t, l), acquire(t, l)
		since := time.Now()
		let := make(chan time.Duration)
		go func() {
			p, err := l.Acquire(t.Context())
			if err != nil {
				t.Error(err)
			}
			p.Done(nil)
			let <- time.Since(since)
		}()
		time.Sleep(pollEvery / 2)
		pressed.Store(true)
		for l.Limit() > 1 {
			time.Sleep(pollEvery)
			_, _ = l.TryAcquire(t.Context())
		}
		first.Done(nil)
		second.Done(nil)
		pressed.Store(false)
		if waited := <-let; waited > time.Second {
			t.Errorf("it waited for %v", waited)
		}
		hangs.Done(nil)
	})
}
