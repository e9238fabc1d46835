package capacity

import (
	"strings"
	"testing"
)

func TestLittleWaitsWhereManyAnswersAreFast(t *testing.T) {
	at := func(rate, mean float64, ok uint64) *rung {
		return &rung{rate: rate, points: []Point{{Rate: rate, OK: ok, Latency: &Latency{Mean: mean}}}}
	}
	broken := at(30, 1, 100)
	broken.points[0].Broken = []string{"errors"}
	for name, c := range map[string]struct {
		rungs []*rung
		want  float64 // the rate of the point
	}{
		"the fastest":              {[]*rung{at(10, 6, 60), at(20, 5, 70), at(30, 7, 80)}, 20},
		"not one of few answers":   {[]*rung{at(10, 6, 60), at(20, 5, few-1)}, 10},
		"rather than few answers":  {[]*rung{at(10, 5, few-1), at(20, 6, 60)}, 20},
		"the most, if all are few": {[]*rung{at(10, 5, 10), at(20, 6, 20)}, 20},
		"not one that broke":       {[]*rung{at(20, 6, 60), broken}, 20},
		"the lowest if all broke":  {[]*rung{broken}, 30},
		"up to 60 % of the knee":   {[]*rung{at(60, 6, 60), at(61, 5, 60)}, 60},
	} {
		if got := calm(c.rungs, at(100, 9, 100)); got.Rate != c.want {
			t.Errorf("%s: %v", name, got.Rate)
		}
	}
}

// A short point ends before a limiter refuses anything; a longer one shows that the limiter does.
func TestAQueueThatRefusesElsewhereHasABound(t *testing.T) {
	grows := &Point{Rate: 640, OK: 300, Seconds: .5, Latency: &Latency{Mean: 100}, InFlight: [4]float64{10, 40, 60, 80}}
	refuses := &Point{Rate: 540, OK: 400, Rejected: 140, Seconds: 1, Latency: &Latency{Mean: 250}}
	e := evidence{slo: SLO{Rejected: .01}, quiet: &Point{Latency: &Latency{Mean: 20}}, broke: []*Point{grows}}
	if said := unboundedQueue(e); !strings.Contains(said, "a queue without bound") {
		t.Errorf("alone: %q", said)
	}
	e.broke = append(e.broke, refuses)
	if said := unboundedQueue(e); said != "" {
		t.Errorf("beside a point with refusals: %q", said)
	}
}
