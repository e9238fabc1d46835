package limit

import (
	"math"
	"testing"
	"time"
)

func TestPaceIsTheMeanByLittlesLaw(t *testing.T) {
	var rough roughness
	at := func(inFlight, perSecond float64) *pace {
		var p pace
		for range 5 {
			p.add(reading{elapsed: time.Second, inFlight: inFlight, work: perSecond, workSize: perSecond}, &rough)
		}
		return &p
	}
	longer, err := at(10, 50).compareWith(at(10, 100), 0.3)
	if math.Abs(longer-math.Log(2)) > 1e-9 || err < 0.01 || err > 0.04 {
		t.Errorf("half the rate with as many in flight: %v longer, by its logarithm, +- %v", longer, err)
	}
	if longer, _ := at(10, 100).compareWith(at(20, 100), 0.3); math.Abs(longer+math.Log(2)) > 1e-9 {
		t.Errorf("the same rate with half as many in flight: %v", longer)
	}
}

func TestPaceIsNotKnownBeforeTheThirdGeneration(t *testing.T) {
	var p, before pace
	var rough roughness
	before.add(reading{elapsed: time.Minute, inFlight: 10, work: 600, workSize: 600}, &rough)
	p.add(reading{elapsed: time.Second, inFlight: 10, work: 25, workSize: 25}, &rough)
	if _, err := p.compareWith(&before, 0.3); err != 0 {
		t.Errorf("known to %v after two and a half generations", err)
	}
	p.add(reading{elapsed: time.Second, inFlight: 10, work: 25, workSize: 25}, &rough)
	if _, err := p.compareWith(&before, 0.3); err == 0 {
		t.Error("not known after five generations")
	}
}

func TestPaceForgets(t *testing.T) {
	var p pace
	var rough roughness
	for range 100 {
		p.add(reading{elapsed: time.Second, inFlight: 10, work: 100, workSize: 100}, &rough)
	}
	if p.n > paceForgets {
		t.Errorf("%v admissions remembered, want %d at most", p.n, paceForgets)
	}
}

// After the backend became four times slower once, no trial was conclusive for a dozen readings.
func TestOneChangeOfTheBackendIsNotRoughness(t *testing.T) {
	var rough roughness
	for range roughReadings {
		rough.add(0.25)
	}
	if rough.add(100); rough.spread(0.1) > 0.7 {
		t.Errorf("one change made a spread of 0.5 one of %.2f", rough.spread(0.1))
	}
}

func TestTheHeldPaceOutlivesARefusedRaise(t *testing.T) {
	a := newAdaptive(forLatency)
	held := pace{seconds: 1, occupied: 5, work: 500, n: 500}
	a.limit, a.phase, a.known, a.proven = 5, holding, true, true
	a.pace = held
	a.tryMore(reading{at: 1}, 8, 5, mean{0, 100})
	a.trial.enter(reading{logTime: 0.5, n: 50, inFlight: 8}, false)
	a.undoRaise(reading{at: 2}, true)
	if a.limit != 5 || a.pace != held {
		t.Errorf("limit %v, pace %+v", a.limit, a.pace)
	}
}
