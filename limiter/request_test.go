package limiter

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
)

func TestTheContextSaysWhatWorkCosts(t *testing.T) {
	l := fixed(t, 10, -1)
	ctx := spillway.WithCost(spillway.WithPriority(t.Context(), spillway.High), 4)
	p, _ := l.Acquire(ctx)
	q, _ := l.AcquireWith(ctx, Request{Cost: 2, Priority: spillway.Low})
	s := l.Stats()
	if s.InFlight != 6 || s.ByPriority[spillway.High].InFlight != 4 || s.ByPriority[spillway.Low].InFlight != 2 {
		t.Errorf("%+v", s)
	}
	p.Done(nil)
	q.Done(nil)
	if p, _ = l.AcquireWith(ctx, Request{Priority: spillway.Low}); l.Stats().ByPriority[spillway.Low].InFlight != 4 {
		t.Error("a request that says only its priority takes not what its context says")
	}
	finish(t, l, p)
}

// Refusals are only counted for a part of the callers, and enforced for the others.
func TestARequestCanBeADryRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []spillway.Reason
		l := configured(t, Config{Law: limit.NewFixed(1), QueueSize: 1, Observer: &Observer{
			WouldReject: func(_ spillway.Priority, r *spillway.Rejection) { told = append(told, r.Reason) },
		}})
		dry := func(ctx context.Context) (Permit, error) {
			return l.AcquireWith(ctx, Request{noWait: true, DryRun: true})
		}
		a := acquire(t, l)
		if _, err := l.TryAcquire(t.Context()); reason(err) != spillway.ReasonQueueFull {
			t.Fatal(err)
		}
		b, err := dry(t.Context())
		if err != nil || len(told) != 1 || told[0] != spillway.ReasonQueueFull {
			t.Fatalf("%v, told %v", err, told)
		}
		start := time.Now()
		c, err := l.AcquireWith(t.Context(), Request{DryRun: true}) // would wait
		if err != nil || time.Since(start) != 0 || len(told) != 1 {
			t.Fatalf("%v after %v, told %v", err, time.Since(start), told)
		}
		var low error
		go func() { _, low = l.AcquireWith(t.Context(), Request{Priority: spillway.Low}) }()
		synctest.Wait()
		d, _ := l.AcquireWith(t.Context(), Request{DryRun: true, Priority: spillway.High}) // would preempt Low
		if synctest.Wait(); low != nil {
			t.Fatalf("a dry run took a place: %v", low)
		}
		if s := l.Stats(); s.InFlight != 4 || s.WouldReject != 1 || s.Rejected != 1 || s.Queued != 1 {
			t.Fatalf("%+v", s)
		}
		l.Close()
		if _, err := dry(t.Context()); reason(err) != spillway.ReasonClosed {
			t.Errorf("closed: %v", err)
		}
		for _, p := range []Permit{a, b, c, d} {
			p.Done(nil)
		}
		synctest.Wait()
		atRest(t, l)
	})
}

func TestWorkOverItsShareRunsOnlyWhereThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, mode := range []Mode{Enforce, DryRun} {
			l := configured(t, Config{Law: limit.NewFixed(2), QueueSize: 10, MaxRefused: 0.01, Mode: mode})
			greedy := func() (Permit, error) { return l.AcquireWith(t.Context(), Request{OverShare: true}) }
			a, err := greedy()
			if err != nil {
				t.Fatalf("%v: there is room: %v", mode, err)
			}
			b := acquire(t, l)
			start := time.Now()
			c, err := greedy()
			if time.Since(start) != 0 || mode == Enforce && reason(err) != spillway.ReasonQuota || mode == DryRun && err != nil {
				t.Fatalf("%v: %v after %v", mode, err, time.Since(start))
			}
			if s := l.Stats(); s.RejectedBy[spillway.ReasonQuota]+s.WouldRejectBy[spillway.ReasonQuota] != 1 {
				t.Fatalf("%v: %+v", mode, s)
			}
			var d Permit
			go func() { d = acquire(t, l) }() // other callers wait as before
			synctest.Wait()
			b.Done(nil)
			synctest.Wait()
			finish(t, l, a, c, d)
		}
	})
}

func TestModesHaveNames(t *testing.T) {
	for text, want := range map[string]Mode{"OFF": Off, "dry-run": DryRun, "DryRun": DryRun, "Enforce": Enforce} {
		written, err := want.MarshalText()
		var m Mode
		if err != nil || m.UnmarshalText([]byte(text)) != nil || m != want || m.UnmarshalText(written) != nil || m != want {
			t.Errorf("%q is %v, and %v is %q: %v", text, m, want, written, err)
		}
	}
	m := Off
	if err := m.UnmarshalText([]byte("on")); err == nil || m != Off || err.Error() != `limiter: unknown mode "on": use off, dryrun or enforce` {
		t.Errorf("%v, %v", m, err)
	}
	if _, err := Mode(7).MarshalText(); err == nil {
		t.Error("mode 7 has a name")
	}
}

func FuzzModeFromText(f *testing.F) {
	for _, text := range []string{"", "off", "DRYRUN", "dry-run", "enforce", "mode(3)", "0", " off"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var m, again Mode
		if err := m.UnmarshalText([]byte(text)); err != nil {
			if m != Enforce || len(err.Error()) > 200 {
				t.Errorf("%v: %v", m, err)
			}
			return
		}
		if err := again.UnmarshalText([]byte(m.String())); err != nil || again != m || m > Off {
			t.Errorf("%q is %v, that is %v, %v", text, m, again, err)
		}
	})
}

func TestTheModeOfAFamilyIsThatOfLaterOnesToo(t *testing.T) {
	k := keyedBy(t, KeyedConfig{New: func(string) Config { return Config{Law: limit.NewFixed(1), QueueSize: -1} }})
	mode := func(key string) Mode {
		l, err := k.Get(key)
		if err != nil {
			t.Fatal(err)
		}
		return l.Mode()
	}
	if mode("a") != Enforce || !k.Open() {
		t.Fatal("at first")
	}
	k.SetMode(DryRun)
	k.SetMode(9)
	if mode("a") != DryRun || mode("b") != DryRun {
		t.Errorf("a has %v, b %v", mode("a"), mode("b"))
	}
	k.SetMode(Enforce)
	if mode("a") != Enforce || mode("c") != Enforce {
		t.Errorf("a has %v, c %v", mode("a"), mode("c"))
	}
	if k.Close(); k.Open() {
		t.Error("open after Close")
	}
	if _, err := k.Acquire(t.Context(), "d"); !errors.Is(err, spillway.ErrRejected) {
		t.Error(err)
	}
}
