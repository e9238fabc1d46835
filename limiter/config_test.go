package limiter

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/spillway-go/spillway/limit"
)

func TestNewSaysWhichFieldIsWrong(t *testing.T) {
	level := func() float64 { return 0 }
	for _, c := range []struct {
		field string
		cfg   Config
	}{
		{"Law", Config{Law: (*witness)(nil)}},
		{"MaxWait", Config{MaxWait: -1}},
		{"mode 9", Config{Mode: 9}},
		{"MaxRefused", Config{MaxRefused: 1}},
		{"MaxRefused", Config{MaxRefused: -0.1}},
		{"MaxRefused", Config{MaxRefused: math.NaN()}},
		{"SlowStart", Config{SlowStart: -1}},
		{"LeakAfter", Config{LeakAfter: -1}},
		{"signal 0", Config{Signals: []Signal{nil}}},
		{"signal 0", Config{Signals: []Signal{Gauge("", level, 1)}}},
		{"signal 0", Config{Signals: []Signal{Gauge("g", nil, 1)}}},
		{"signal 0", Config{Signals: []Signal{Gauge("g", level, 0)}}},
		{"signal 0", Config{Signals: []Signal{Gauge("g", level, math.NaN())}}},
		{"signal 1", Config{Signals: []Signal{Memory(0), (*gauge)(nil)}}},
	} {
		if _, err := New(c.cfg); err == nil || !strings.Contains(err.Error(), c.field) {
			t.Errorf("%s, %+v: %v", c.field, c.cfg, err)
		}
	}
}

// Regression: New named only the first fault of a configuration.
func TestNewNamesAllThatIsWrong(t *testing.T) {
	_, err := New(Config{MaxWait: -1, MaxRefused: 2, SlowStart: -1, LeakAfter: -1, Mode: 7, Signals: []Signal{nil}})
	if err == nil || strings.Count(err.Error(), "limiter: ") != 6 || strings.Count(err.Error(), "\n") != 5 {
		t.Fatalf("want six faults, one on a line:\n%v", err)
	}
}

// Regression: two limiters shared one law, each with its own numbering of the work.
func TestALawOrSignalServesOneLimiter(t *testing.T) {
	aimd, err := limit.NewAIMD(limit.AIMDConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for _, law := range []limit.Law{limit.NewAdaptive(), limit.NewPassive(), aimd} {
		if _, err := New(Config{Law: law, MaxWait: -1}); err == nil {
			t.Fatal("a negative wait")
		}
		configured(t, Config{Law: law}) // a failed New has not claimed the law
		if _, err := New(Config{Law: law}); err == nil || !strings.Contains(err.Error(), "another limiter") {
			t.Errorf("a second limiter with %T: %v", law, err)
		}
	}
	shared := limit.NewFixed(3) // a fixed law learns nothing
	configured(t, Config{Law: shared})
	configured(t, Config{Law: shared})

	law, first, second := limit.NewAdaptive(), Memory(0), Memory(0)
	configured(t, Config{Signals: []Signal{second}})
	if _, err := New(Config{Law: law, Signals: []Signal{first, second}}); err == nil || !strings.Contains(err.Error(), "signal 1 (memory)") {
		t.Errorf("a signal of another limiter: %v", err)
	}
	if _, err := New(Config{Signals: []Signal{first, first}}); err == nil {
		t.Error("a signal twice")
	}
	configured(t, Config{Law: law, Signals: []Signal{first}})
}

func TestOfManyLimitersMadeAtOnceOneGetsTheLaw(t *testing.T) {
	law := limit.NewAdaptive()
	var made atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := New(Config{Law: law}); err == nil {
				made.Add(1)
			}
		})
	}
	wg.Wait()
	if made.Load() != 1 {
		t.Errorf("%d limiters have the same law", made.Load())
	}
}

// The zero values used to fail with a nil dereference somewhere inside.
func TestTheZeroValuesSayWhatToCall(t *testing.T) {
	ctx := t.Context()
	var l Limiter
	var k Keyed
	for name, use := range map[string]func(){
		"New: Acquire":       func() { _, _ = l.Acquire(ctx) },
		"New: TryAcquire":    func() { _, _ = l.TryAcquire(ctx) },
		"New: Do":            func() { _ = l.Do(ctx, nothing) },
		"New: SetMode":       func() { l.SetMode(DryRun) },
		"New: SetBounds":     func() { _ = l.SetBounds(1, 2) },
		"New: Stats":         func() { l.Stats() },
		"New: Drain":         func() { _ = l.Drain(ctx) },
		"New: Close":         func() { l.Close() },
		"NewKeyed: Do":       func() { _ = k.Do(ctx, "a", nothing) },
		"NewKeyed: Acquire":  func() { _, _ = k.Acquire(ctx, "a") },
		"NewKeyed: Get":      func() { _, _ = k.Get("a") },
		"NewKeyed: All":      func() { k.All()(func(string, Stats) bool { return true }) },
		"NewKeyed: Drain":    func() { _ = k.Drain(ctx) },
		"NewKeyed: Close":    func() { k.Close() },
		"New: Acquire, late": func() { l.SetMode(99); _, _ = l.AcquireWith(ctx, Request{Cost: 2}) },
	} {
		func() {
			defer func() {
				made, _, _ := strings.Cut(name, ":")
				if r := fmt.Sprint(recover()); !strings.HasSuffix(r, "is made by "+made) {
					t.Errorf("%s: %s", name, r)
				}
			}()
			use()
		}()
	}
	if l.Limit() != 0 {
		t.Error("nothing may run in a limiter that was not made")
	}
}
