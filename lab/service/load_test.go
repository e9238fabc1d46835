package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/loadgen"
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

// The load behind the measured stretch once had to be as long as the longest answer might take.
func TestALoadThatFillsEndsWithTheLastAnswerThatCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		load := Load{Stretches: []Stretch{{Rate: 100, For: time.Second}, {Rate: 100, For: time.Second}, {Rate: 100, For: time.Hour}}, Measured: 1, Seed: 1, Fills: true}
		var targets []loadgen.Target
		var filled atomic.Uint64
		for i := range load.Stretches {
			part := func(class string, takes time.Duration) loadgen.Part {
				return loadgen.Part{Class: class, Weight: 1, Target: loadgen.TargetFunc(func(context.Context, uint64) loadgen.Outcome {
					time.Sleep(takes)
					if i == 2 {
						filled.Add(1)
					}
					return loadgen.OK
				})}
			}
			mix, err := loadgen.Mix(1, part("short", time.Millisecond), part("long", 5*time.Second))
			if err != nil {
				t.Fatal(err)
			}
			targets = append(targets, mix)
		}
		began := time.Now()
		res, err := load.SendTo(t.Context(), targets)
		if took := time.Since(began); err != nil || took < 7*time.Second || took > 13*time.Second {
			t.Fatalf("%v, after %v", err, took)
		}
		if res.Partial || len(res.Classes) != 2 || res.Classes[0].Outcomes[loadgen.OK].Count+res.Classes[1].Outcomes[loadgen.OK].Count != res.Offered {
			t.Errorf("%d were sent, partial %v, by class %+v", res.Offered, res.Partial, res.Classes)
		}
		if filled.Load() < 200 {
			t.Errorf("%d requests kept the load up for five seconds", filled.Load())
		}
	})
}

func TestARunThatWasSentLateIsMadeAgainTwice(t *testing.T) {
	for name, c := range map[string]struct {
		lags  []time.Duration // of each run
		count int
		why   string
	}{
		"in time": {[]time.Duration{time.Millisecond}, 1, ""},
		"once":    {[]time.Duration{time.Second, time.Millisecond}, 2, ""},
		"twice":   {[]time.Duration{time.Second, time.Second, time.Millisecond}, 3, ""},
		"always":  {[]time.Duration{time.Second, time.Second, time.Second}, 3, "1s late (p99), more than --most-lag=50ms"},
	} {
		made := 0
		_, err := Limits{MostLag: 50 * time.Millisecond}.InTime(func() (results.Run, error) {
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

// An answer about another patient once went unnoticed: only the first error was
// checked, which came from a failing store and looked the same.
func TestAnAnswerAboutAnotherPatientIsNoticedAmongOtherErrors(t *testing.T) {
	var foreign atomic.Int64
	id := func(n uint64) string { return fmt.Sprintf("P%06d", n) }
	answers := []func(w http.ResponseWriter){
		func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) },
		func(w http.ResponseWriter) { fmt.Fprintf(w, `{"id":"%s"}`, id(1)) },
		func(w http.ResponseWriter) { fmt.Fprintf(w, `{"id":"%s"}`, id(7)) },
	}
	n := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answers[n](w) }))
	defer srv.Close()
	target, err := Patients(srv.URL, nil, id, &foreign)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	for i, want := range []struct {
		outcome loadgen.Outcome
		foreign int64
	}{{loadgen.Error, 0}, {loadgen.OK, 0}, {loadgen.Error, 1}} {
		n = i
		if got := target.Do(t.Context(), uint64(i)); got != want.outcome || foreign.Load() != want.foreign {
			t.Errorf("answer %d: %v and %d about another patient, want %v and %d", i, got, foreign.Load(), want.outcome, want.foreign)
		}
	}
}

type answers func(*http.Request) (*http.Response, error)

func (f answers) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestARefusalByTheClientItselfIsNotShed(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		ctx     context.Context
		status  int
		err     error
		outcome loadgen.Outcome
		shed    bool
	}{
		{t.Context(), 200, nil, loadgen.OK, false},
		{t.Context(), 503, nil, loadgen.Rejected, true},
		{t.Context(), 429, nil, loadgen.Rejected, true},
		{t.Context(), 0, &spillway.Rejection{}, loadgen.Rejected, false},
		{t.Context(), 504, nil, loadgen.Timeout, false},
		{gone, 0, context.Canceled, loadgen.Timeout, false},
		{t.Context(), 0, io.ErrUnexpectedEOF, loadgen.Error, false},
		{t.Context(), 500, nil, loadgen.Error, false},
	} {
		req, err := http.NewRequestWithContext(test.ctx, http.MethodGet, "http://service/", nil)
		if err != nil {
			t.Fatal(err)
		}
		outcome, shed := Ask(answers(func(*http.Request) (*http.Response, error) {
			if test.err != nil {
				return nil, test.err
			}
			return &http.Response{StatusCode: test.status, Body: http.NoBody}, nil
		}), req)
		if outcome != test.outcome || shed != test.shed {
			t.Errorf("%d, %v: %v, shed %v", test.status, test.err, outcome, shed)
		}
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
