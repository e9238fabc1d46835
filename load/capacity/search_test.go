package capacity

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/internal/sim"
)

// world is a service: what a probe of it measures, and how long that takes.
type world func(p Probe, seed uint64) (Point, time.Duration)

var slo, _ = ParseSLO("p99=200ms,errors=0.1%")

// simulated is a service of package sim under even arrivals.
func simulated(backend sim.Backend, service sim.Distribution) world {
	return func(p Probe, seed uint64) (Point, time.Duration) {
		report, err := sim.Run(sim.Scenario{
			Seed: seed, Duration: p.For, Arrivals: sim.Constant(p.Rate), Backend: backend, Policy: sim.Unlimited(),
			Classes: []sim.Class{{Service: service, Deadline: Patience(slo)}}, Record: sim.Record{Interval: p.For / steps},
		})
		if err != nil {
			panic(err)
		}
		out := Point{Rate: p.Rate, Seconds: p.For.Seconds()}
		out.latencies(&report.Total.Latency, slo) // of them all; those that are late are beyond every bound
		out.OK, out.Failed = report.Total.OK, report.Total.Late
		for i, at := range report.Timeline[:steps] {
			out.InFlight[i*quarters/steps] += float64(at.InBackend) * quarters / steps
			if i >= steps/quarters {
				out.Goodput += float64(at.OK) / (out.Seconds * (quarters - 1) / quarters)
			}
		}
		return out, p.For + time.Duration(report.Total.Latency.Max())
	}
}

// always answers in 5 ms, at most the limit a second.
func always(limit float64) world {
	return func(p Probe, _ uint64) (Point, time.Duration) {
		out := Point{Rate: p.Rate, Seconds: p.For.Seconds(), Goodput: min(p.Rate, limit)}
		sent := math.Round(p.Rate * out.Seconds)
		var h histogram.Histogram
		h.RecordN(5e6, uint64(min(sent, math.Round(out.Goodput*out.Seconds))))
		out.latencies(&h, slo)
		out.Rejected = uint64(sent) - out.OK
		for i := range out.InFlight {
			out.InFlight[i] = out.Goodput * .005
		}
		return out, p.For
	}
}

// disturbed has something else happen on the machine in one probe of seven: 3 % of the
// answers are slow.
func disturbed(w world) world {
	return func(p Probe, seed uint64) (Point, time.Duration) {
		out, took := w(p, seed)
		if rand.New(rand.NewPCG(seed, 7)).IntN(7) == 0 {
			out.Over[0] += out.OK * 3 / 100
		}
		return out, took
	}
}

// find searches and holds the search to its promises.
func find(t *testing.T, w world, most float64, seed uint64) *Result {
	t.Helper()
	s := &Search{Setup: Setup{SLO: slo, Max: most, Time: 90 * time.Second}}
	for n := uint64(0); ; n++ {
		p, more := s.Next()
		if !more {
			break
		}
		if !(p.Rate > 0 && p.Rate <= most) || p.For <= 0 || s.spent+p.For > s.Time {
			t.Fatalf("%+v after %v", p, s.spent)
		}
		s.Add(w(p, seed*1000+n))
	}
	return s.Result(0)
}

// sweep is the slow twin: twenty rates, each for half a minute, and the highest one up to
// which all keep the SLO.
func sweep(w world, around float64) (knee float64) {
	for i := range 20 {
		rate := around * (.81 + .02*float64(i))
		p, _ := w(Probe{Rate: rate, For: 30 * time.Second}, uint64(i))
		if p.judge(slo); len(p.Broken) > 0 {
			break
		}
		knee = rate
	}
	return knee
}

func TestTheKneeIsThatOfASlowSweep(t *testing.T) {
	queue := simulated(sim.NWay(20), sim.Exponential(20*time.Millisecond))
	even := simulated(sim.NWay(20), sim.Uniform(50*time.Millisecond, 100*time.Millisecond))
	thrashing := simulated(sim.Degrading(20, .2), sim.Uniform(10*time.Millisecond, 30*time.Millisecond))
	for _, c := range []struct {
		name            string
		calm, searched  world
		around, atOnce  float64
		within, seconds float64
	}{
		{"20 servers", queue, queue, 1000, 20, .03, 90},
		{"20 even servers", even, even, 266.7, 20, .03, 90},
		{"degradation past the knee", thrashing, thrashing, 1000, 20, .03, 90},
		{"noise", even, disturbed(even), 266.7, 20, .03, 90},
		{"a rate limit", always(100), always(100), 100, 1, .03, 90},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			truth, good := sweep(c.calm, c.around), 0
			if truth == 0 {
				t.Fatal("the sweep found nothing")
			}
			var said []string
			for seed := range uint64(10) {
				r := find(t, c.searched, 10_000, seed)
				if math.Abs(r.Knee/truth-1) <= c.within && r.Seconds <= c.seconds {
					good++
				}
				said = append(said, fmt.Sprintf("%.1f (broken at %.1f) in %.0f s: %s", r.Knee, r.Broken, r.Seconds, r.Ending))
			}
			if good < 9 {
				t.Errorf("%d of 10 within %v %% of %.1f:\n%s", good, 100*c.within, truth, strings.Join(said, "\n"))
			}
		})
	}
}

func TestWhatStopsAServiceIsNamed(t *testing.T) {
	queue := simulated(sim.NWay(20), sim.Uniform(50*time.Millisecond, 100*time.Millisecond))
	for says, w := range map[string]world{
		"above 100/s whatever its latency":    always(100),
		"a queue without bound":               queue,
		"Past the knee it does less":          simulated(sim.Degrading(20, 1), sim.Fixed(20*time.Millisecond)),
		"no two requests close to each other": func(p Probe, _ uint64) (Point, time.Duration) { return always(.8*p.Rate)(p, 0) },
	} {
		r := find(t, w, 10_000, 1)
		text := strings.Join(r.Doubts, "\n")
		refused := says == "no two requests close to each other"
		if !strings.Contains(text, says) || r.Found() == refused || says == "a queue without bound" && strings.Contains(text, "rate limit") {
			t.Errorf("%s: doubts %q of %+v", says, text, r)
		}
	}
}

// Two short probes in a row may be disturbed. The rate that they broke is tried for longer
// before it ends the search.
func TestADisturbedStartDoesNotEndTheSearch(t *testing.T) {
	even := simulated(sim.NWay(20), sim.Uniform(50*time.Millisecond, 100*time.Millisecond))
	r := find(t, func(p Probe, seed uint64) (Point, time.Duration) {
		out, took := even(p, seed)
		if p.Rate == 40 && p.Purpose != Prove {
			out.Over[0] = out.OK
		}
		return out, took
	}, 10_000, 1)
	if r.Knee < 160 {
		t.Errorf("%+v", r)
	}
}

// A service with a short listen queue answers nearly everything far above its knee, and a
// second above it may pass by luck.
func TestAGoodputThatMisleadsIsGivenUp(t *testing.T) {
	r := find(t, func(p Probe, _ uint64) (Point, time.Duration) {
		out, took := always(math.Inf(1))(p, 0)
		lucky := p.Purpose == Grow && p.Rate <= 640
		if p.Rate > 450 && !lucky {
			out.Over[0], out.Goodput = out.OK/20, .95*out.Goodput
			took += time.Second
		}
		return out, took
	}, 10_000, 1)
	if r.Knee < 380 || r.Knee > 450 {
		t.Errorf("%.0f to %.0f in %.0f s, want 450", r.Knee, r.Broken, r.Seconds)
	}
}

func TestAKneeThatIsNeverReachedEndsAtTheLargestRate(t *testing.T) {
	for _, most := range []float64{3, 10, 777} {
		if r := find(t, always(math.Inf(1)), most, 1); r.Ending != MaxRate || r.Knee != most || r.Broken != 0 || !r.Proven {
			t.Errorf("up to %v: %+v", most, r)
		}
	}
}

func TestAServiceThatFailsAtOnceHasNoKnee(t *testing.T) {
	errors := func(p Probe, _ uint64) (Point, time.Duration) {
		return Point{Rate: p.Rate, Seconds: p.For.Seconds(), Over: []uint64{0}, Failed: 20}, p.For
	}
	slow := simulated(sim.NWay(20), sim.Fixed(300*time.Millisecond))
	for name, c := range map[string]struct {
		world
		says string
	}{"errors": {errors, "errors 100 %"}, "slow": {slow, "p99 300 ms, allowed 200ms"}} {
		r := find(t, c.world, 10_000, 1)
		if r.Ending != NeverKept || r.Found() || !strings.Contains(r.Why, c.says) || r.Seconds > 30 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestAServiceBelowTheFirstRateIsFound(t *testing.T) {
	if r := find(t, simulated(sim.NWay(1), sim.Fixed(180*time.Millisecond)), 10_000, 1); math.Abs(r.Knee/5.5-1) > .06 {
		t.Errorf("%+v, want about 5.5/s", r)
	}
}

func TestABoundGeneratorEndsTheSearch(t *testing.T) {
	limited := func(p Probe, _ uint64) (Point, time.Duration) {
		out, took := always(math.Inf(1))(p, 0)
		if p.Rate > 500 {
			out.Over[0], out.Late = out.OK, "Requests were sent late."
		}
		return out, took
	}
	r := find(t, limited, 10_000, 1)
	if r.Ending != Generator || r.Knee != 320 || !strings.Contains(r.Why, "sent late") || r.Seconds > 45 {
		t.Errorf("%+v", r)
	}
}

func TestAGeneratorThatIsAlwaysLateIsNamed(t *testing.T) {
	r := find(t, func(p Probe, _ uint64) (Point, time.Duration) {
		out, took := always(math.Inf(1))(p, 0)
		out.Over[0], out.Late = out.OK, "Requests were sent late."
		return out, took
	}, 10_000, 1)
	if r.Found() || !strings.Contains(r.Why, "the generator itself was late: Requests") {
		t.Errorf("%+v", r)
	}
}

func TestALostFigureIsMissing(t *testing.T) {
	r := find(t, func(p Probe, _ uint64) (Point, time.Duration) {
		return Point{Rate: p.Rate, Seconds: p.For.Seconds(), Over: []uint64{0}, Rejected: 50}, p.For
	}, 100, 1)
	if r.Found() || len(r.Advice) != 0 || r.Points[0].Latency != nil {
		t.Errorf("%+v", r)
	}
}

// Whatever a service does, the search ends in its time, never offers more than it may,
// asks a second time before it believes that the SLO is broken, and finds a rate that was
// kept below one that was broken.
func FuzzSearch(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 1, 0, 0, 1, 2, 3}, uint16(1000))
	f.Add([]byte{1, 1, 1, 1}, uint16(1))
	f.Add([]byte{0, 0, 5, 5, 0, 5, 0, 5}, uint16(60000))
	f.Fuzz(func(t *testing.T, answers []byte, most uint16) {
		if most == 0 {
			return
		}
		s := &Search{Setup: Setup{SLO: slo, Max: float64(most), Time: 90 * time.Second}}
		n := 0
		for ; ; n++ {
			p, more := s.Next()
			if !more {
				break
			}
			if !(p.Rate > 0 && p.Rate <= float64(most)) || !(p.For > 0) || s.spent+p.For > s.Time || n > 1000 {
				t.Fatalf("probe %d: %+v after %v", n, p, s.spent)
			}
			answer := byte(0)
			if len(answers) > 0 {
				answer = answers[n%len(answers)]
			}
			point, took := always(math.Inf(1))(p, 0)
			switch answer % 6 {
			case 1:
				point.Over[0] = point.OK
			case 2:
				point.Failed, point.OK, point.Latency = point.OK, 0, nil
			case 3:
				point.Over[0], point.Goodput = point.OK, point.Goodput/2
			case 4:
				point.Over[0], point.Late = point.OK, "late"
			case 5:
				point.Latency.P50, point.Over[0] = 500, point.OK
			}
			s.Add(point, took)
		}
		r := s.Result(100)
		if r.Ending == "" || r.Found() && r.Broken != 0 && r.Broken <= r.Knee {
			t.Errorf("%+v", r)
		}
		for _, rung := range s.rungs {
			if rung.rate == r.Knee && rung.kept == 0 || rung.rate == r.Broken && rung.broke < 2 {
				t.Errorf("%+v at %v", rung, rung.rate)
			}
		}
		r.Text(io.Discard)
		if _, err := r.Page(""); err != nil {
			t.Error(err)
		}
	})
}
