package processors

import (
	"fmt"
	"testing"
	"time"
)

// What waits for a processor beside arrivals, and admitted work that comes back to the queue.

// If arrivals do not cause the wait, few of them are shed.
func TestWhatIsNotMadeByArrivalsIsNotShed(t *testing.T) {
	doubles := func(at time.Duration) float64 { // the rate doubles during the first trial
		if at < 700*time.Millisecond {
			return 25
		}
		return 60
	}
	for _, hogs := range []int{5, 12, 15, 20, 30, 60} {
		for rate, at := range map[string]func(time.Duration) float64{"30": constant(30), "200": constant(200), "25 and then 60": doubles} {
			m := &model{procs: 1, cost: time.Millisecond, refusal: 40 * time.Microsecond, rate: at, hogs: hogs, patience: time.Second}
			o := m.run(0, 60*time.Second, nil)[1]
			t.Logf("%d goroutines that always compute, %v a second: of %.0f calls %.0f are refused, %.0f in time", hogs, rate, o.offered, o.refused, o.good)
			if o.refused > .08*o.offered { // in the first minute; later, pauses are longer
				t.Errorf("%d goroutines that always compute, %v a second: of %.0f calls %.0f are refused", hogs, rate, o.offered, o.refused)
			}
		}
	}
}

// With a few long calls a second, shedding works as with many short calls. Admitted calls that are
// stopped after a slice are left to the limiter.
func TestLongComputingIsLeftToTheLimiter(t *testing.T) {
	for _, load := range []float64{1.2, 1.5, 3} {
		m := &model{procs: 1, cost: 200 * time.Millisecond, refusal: 40 * time.Microsecond, rate: constant(load / .2), patience: time.Second, limit: 3}
		o := m.run(5*time.Second, 65*time.Second, nil)[1]
		if can := 59 / .2; o.good < .75*can {
			t.Errorf("load %.1f: %.0f of %.0f that can be done", load, o.good, can)
		}
	}
}

// A pause of the whole process is no reason to shed.
func TestAPauseOfTheProcessShedsNothing(t *testing.T) {
	for _, load := range []float64{.6, .8} {
		for _, length := range []time.Duration{300 * time.Millisecond, 3 * time.Second, 10 * time.Second} {
			m := &model{procs: 1, cost: 4 * time.Millisecond, refusal: 40 * time.Microsecond, rate: constant(load / .004), patience: time.Hour,
				pause: [2]time.Duration{20 * time.Second, 20*time.Second + length}}
			m.patience = 30 * time.Second
			if o := m.run(time.Second, 120*time.Second, nil)[1]; o.refused > .001*o.offered {
				t.Errorf("load %.1f, stopped for %v: of %.0f calls %.0f are refused", load, length, o.offered, o.refused)
			}
		}
	}
}

// Admitted work that sleeps does not wait for a processor. Regression: work in flight was taken off the queue, however
// much of it slept. Calls that wait for another service hid the overload, and no call was answered in time.
func TestWorkThatSleepsHidesNoOverload(t *testing.T) {
	for _, away := range []time.Duration{20 * time.Millisecond, 200 * time.Millisecond, 800 * time.Millisecond} {
		for _, load := range []float64{1.5, 3} {
			m := &model{procs: 1, cost: 4 * time.Millisecond, refusal: 40 * time.Microsecond, rate: constant(load / .004), away: away, limit: 2000, patience: 2 * time.Second}
			o := m.run(4*time.Second, 64*time.Second, nil)[1]
			can := 58 / .004
			t.Logf("%v asleep, load %.1f: %.3f of what can be done, median %v, p99 %v", away, load, o.good/can, quantile(o.waits, .5), quantile(o.waits, .99))
			if o.good < .92*can {
				t.Errorf("%v asleep, load %.1f: %.3f of what can be done", away, load, o.good/can)
			}
		}
	}
}

// Admitted work that computes for long, or comes back after a sleep, waits for a processor again and again. While all
// of it is answered in time, hardly any arrival is shed: the queue is not made at the door.
func TestAdmittedWorkInTheQueueIsNoOverload(t *testing.T) {
	for _, procs := range []int{1, 2} {
		for _, load := range []float64{.7, .9} {
			for _, cost := range []time.Duration{10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond} {
				for _, away := range []time.Duration{0, 200 * time.Millisecond} {
					m := &model{procs: procs, cost: cost, refusal: 40 * time.Microsecond, rate: constant(load * float64(procs) / cost.Seconds()), away: away, patience: 10 * time.Second}
					o := m.run(time.Second, 64*time.Second, nil)[1]
					if o.refused > 0 {
						t.Logf("%v, %d processors, %v asleep, load %.1f: of %.0f calls %.0f are refused", cost, procs, away, load, o.offered, o.refused)
					}
					if o.refused > .001*o.offered {
						t.Errorf("%v, %d processors, %v asleep, load %.1f: of %.0f calls %.0f are refused", cost, procs, away, load, o.offered, o.refused)
					}
				}
			}
		}
	}
}

// Streams that send something now and then need little of the processors. Beside them as much of the rest is done as
// there is room for, and nothing is shed while there is room for all.
func TestStreamsHideNoOverloadAndMakeNone(t *testing.T) {
	for _, together := range []bool{false, true} {
		for _, load := range []float64{.5, .8, 1.5, 3} {
			const send = 20 * time.Microsecond
			can := (1 - 1500*send.Seconds()) / .005
			m := &model{procs: 1, cost: 5 * time.Millisecond, refusal: 40 * time.Microsecond, rate: constant(load * can), streams: 1500, send: send, together: together, patience: time.Second}
			o := m.run(4*time.Second, 64*time.Second, nil)[1]
			name := fmt.Sprintf("1,500 streams, together: %v, load %.1f", together, load)
			t.Logf("%s: %.3f of what can be done, of %.0f calls %.0f are refused, p99 %v", name, o.good/59/can, o.offered, o.refused, quantile(o.waits, .99))
			if load < 1 && o.refused > 0 || load > 1 && o.good < .85*59*can {
				t.Errorf("%s: %.3f of what can be done, of %.0f calls %.0f are refused", name, o.good/59/can, o.offered, o.refused)
			}
		}
	}
}
