package capacity

import (
	"context"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/load/loadgen"
)

// database has 20 connections, for which requests wait as long as it takes.
func database(query time.Duration) loadgen.Target {
	connections := make(chan struct{}, 20)
	return loadgen.TargetFunc(func(ctx context.Context, _ uint64) loadgen.Outcome {
		select {
		case connections <- struct{}{}:
		case <-ctx.Done():
			return loadgen.FromError(ctx.Err())
		}
		defer func() { <-connections }()
		select {
		case <-time.After(query):
			return loadgen.OK
		case <-ctx.Done():
			return loadgen.FromError(ctx.Err())
		}
	})
}

func TestARealLoadFindsTheKneeOfADatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, seen := time.Now(), 0
		r, err := Run(t.Context(), Config{
			Target: database(75 * time.Millisecond), SLO: slo, MaxRate: 10_000, Time: 90 * time.Second, Traffic: 1000,
			Done: func(Point) { seen++ },
		})
		if err != nil {
			t.Fatal(err)
		}
		const truth = 20 / .075
		if math.Abs(r.Knee/truth-1) > .03 || r.Ending != Narrowed || !r.Proven || r.Broken/r.Knee > precision || seen != len(r.Points) {
			t.Errorf("knee %v, broken at %v, %v, %d of %d points", r.Knee, r.Broken, r.Why, seen, len(r.Points))
		}
		if took := time.Since(began); took > 90*time.Second {
			t.Errorf("took %v", took)
		}
		advice := map[string]float64{}
		for _, a := range r.Advice {
			advice[a.What] = a.Value
		}
		if c := advice["concurrency"]; c < 19 || c > 21 {
			t.Errorf("concurrency %v, want the 20 connections", c)
		}
		if q := advice["queue"]; q < 30 || q > 35 { // 267/s × 125 ms
			t.Errorf("queue %v", q)
		}
		if n := advice["replicas"]; n != 6 { // 1000 / (267 × 0.7) = 5.4
			t.Errorf("replicas %v", n)
		}
		var text strings.Builder
		r.Text(&text)
		for _, want := range []string{"The knee is", "Little's law", "a queue without bound", "████"} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("%q is missing in\n%s", want, text.String())
			}
		}
		page, err := r.Page("spillway capacity")
		if err != nil || !strings.Contains(page, "<svg") || !strings.Contains(page, "Little&#39;s law") {
			t.Errorf("the page: %v", err)
		}
	})
}

func TestACancelledSearchReturnsWhatItHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		r, err := Run(ctx, Config{Target: database(75 * time.Millisecond), SLO: slo, MaxRate: 1000, Time: 90 * time.Second})
		if err != nil || r.Ending != Interrupted || len(r.Points) != 4 || r.Knee != 80 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func TestTimeoutsAreErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := Run(t.Context(), Config{Target: database(time.Minute), SLO: slo, MaxRate: 1000, Time: 90 * time.Second, Timeout: time.Second})
		if err != nil || r.Ending != NeverKept || r.Points[0].Failed == 0 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func TestOnlyLatenessThatExplainsTheLatencyIsTheGenerators(t *testing.T) {
	c := Config{SLO: slo}
	result := func(lag, latency time.Duration) *loadgen.Result {
		r := &loadgen.Result{Offered: 100, GeneratorBound: true}
		r.Lag.RecordN(int64(lag), 100)
		r.Outcomes[loadgen.OK].Latency.RecordN(int64(latency), 100)
		return r
	}
	for _, test := range []struct {
		lag, latency time.Duration
		inFlight     float64
		want         bool
	}{
		{250 * time.Millisecond, 300 * time.Millisecond, 5, true},
		{30 * time.Millisecond, 40 * time.Millisecond, 5, false},     // far from what the SLO allows
		{120 * time.Millisecond, 300 * time.Millisecond, 5, false},   // most of it is the service's
		{250 * time.Millisecond, 300 * time.Millisecond, 250, false}, // 1,000/s × 200 ms are 200
	} {
		if got := c.late(Probe{Rate: 1000}, result(test.lag, test.latency), test.inFlight); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}

func TestBadSettingsSendNothing(t *testing.T) {
	target := loadgen.TargetFunc(func(context.Context, uint64) loadgen.Outcome { panic("sent") })
	for want, c := range map[string]Config{
		"the largest rate": {Target: target, Time: time.Minute},
		"the time":         {Target: target, MaxRate: 10, Time: time.Second},
		"the timeout":      {Target: target, MaxRate: 10, Time: time.Minute, Timeout: -1},
		"the traffic":      {Target: target, MaxRate: 10, Time: time.Minute, Traffic: math.NaN()},
	} {
		if _, err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A generator without free files once made the SLO look broken, and a knee of the machine was
// printed as that of the service.
func TestASearchEndsWhenTheGeneratorsMachineRunsOutOfSomething(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") }))
	defer server.Close()
	slo, err := ParseSLO("p99=30s,errors=50%")
	if err != nil {
		t.Fatal(err)
	}
	for _, left := range []int64{12, 0} { // files
		var dialled atomic.Int64
		target, err := loadgen.NewHTTP(loadgen.HTTPConfig{URL: server.URL, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			if dialled.Add(1) > left {
				return nil, os.NewSyscallError("socket", syscall.EMFILE)
			}
			return new(net.Dialer).DialContext(ctx, network, address)
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer target.Close()
		r, err := Run(t.Context(), Config{Target: target, SLO: slo, MaxRate: 1000, Time: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		r.Text(&text)
		if r.Ending != Generator || !strings.Contains(r.Void, "open files") || !strings.Contains(text.String(), "ulimit -n") || r.Found() != (left > 0) || len(r.Points) > 2 {
			t.Errorf("with %d files: %+v\n%s", left, r, text.String())
		}
	}
}
