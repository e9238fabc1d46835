package service

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/loadgen"
)

func TestOneStretchOfALoadCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		load := Load{Stretches: []Stretch{{Rate: 200, For: 2 * time.Second}, {Rate: 100, For: time.Second}, {Rate: 50, For: time.Second}}, Measured: 1, Seed: 1}
		from, to := load.Window()
		if began := time.Now(); from != began.Add(2*time.Second) || to != began.Add(3*time.Second) {
			t.Errorf("from %v to %v", from.Sub(began), to.Sub(began))
		}
		var sent [3]atomic.Uint64
		res, err := load.Send(t.Context(), func(_ context.Context, n uint64, counts bool) loadgen.Outcome {
			now := time.Now()
			if in := !now.Before(from) && now.Before(to); in != counts || counts != (StretchOf(n) == 1) {
				t.Errorf("request %d of stretch %d counts: %v, after %v", uint32(n), StretchOf(n), counts, now.Sub(from))
			}
			sent[StretchOf(n)].Add(1)
			time.Sleep(5 * time.Second) // answered after the end of everything
			return loadgen.OK
		})
		if err != nil || res.Offered != sent[1].Load() || res.Outcomes[loadgen.OK].Count != res.Offered {
			t.Errorf("%v: %d counted, %d sent", err, res.Offered, sent[1].Load())
		}
		for i, s := range load.Stretches {
			if want := s.Rate * s.For.Seconds(); float64(sent[i].Load()) < want/2 || float64(sent[i].Load()) > 2*want {
				t.Errorf("stretch %d: %d requests, want about %v", i, sent[i].Load(), want)
			}
		}
	})
}

func TestARunThatWasSentLateIsMadeAgainOnce(t *testing.T) {
	for name, c := range map[string]struct {
		lags  []time.Duration // of each run
		count int
		why   string
	}{
		"in time": {[]time.Duration{time.Millisecond}, 1, ""},
		"once":    {[]time.Duration{time.Second, time.Millisecond}, 2, ""},
		"twice":   {[]time.Duration{time.Second, time.Second}, 2, "1s late (p99), more than --most-lag=50ms"},
	} {
		made := 0
		_, err := InTime(50*time.Millisecond, func() (results.Run, error) {
			r := results.Run{Lag: &histogram.Histogram{}}
			r.Lag.Record(int64(c.lags[made]))
			made++
			return r, nil
		})
		if made != c.count || (err != nil) != (c.why != "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %d runs, %v", name, made, err)
		}
	}
}
