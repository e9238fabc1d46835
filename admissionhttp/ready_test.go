package admissionhttp_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/spillway-go/spillway/admissionhttp"
)

func TestReadinessFollowsStartAndDrainAndNeverTheLoad(t *testing.T) {
	lim := one(t)
	var up atomic.Bool
	h := admissionhttp.Ready(up.Load, lim.Open)
	expect := func(when string, want int) {
		t.Helper()
		if w := get(h, "/readyz"); w.Code != want {
			t.Errorf("%s: %d, want %d", when, w.Code, want)
		}
	}
	expect("starting", 503)
	up.Store(true)
	expect("started", 200)
	permit, _ := lim.Acquire(t.Context())
	if _, err := lim.Acquire(t.Context()); err == nil {
		t.Fatal("there is room")
	}
	expect("full", 200)
	up.Store(false)
	expect("stopping", 503)
	up.Store(true)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_ = lim.Drain(ended)
	expect("draining", 503)
	permit.Release()
	expect("drained", 503)
}
