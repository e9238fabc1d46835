package processors

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/pages"
)

// model is a process whose goroutines wait for its processors, first come, first served. A request is
// read from its socket when its turn comes, and is then shed or computes.
type model struct {
	procs    int
	cost     time.Duration // mean processor time of an admitted request
	refusal  time.Duration // processor time of a request that is shed
	rate     func(at time.Duration) float64
	level    func() int
	stalls   func(at time.Duration) time.Duration // end of a stall of all processors; nil: no stalls
	hogs     int                                  // goroutines that always compute, a slice of 10 ms each
	patience time.Duration
	limit    int              // limit of the limiter; zero: none
	away     time.Duration    // wait of admitted work halfway, for something other than a processor; zero: none
	streams  int              // each sends something once a second
	send     time.Duration    // processor time of that
	together bool             // the streams send at the same time
	ignored  bool             // no request is shed
	pause    [2]time.Duration // start and end of a pause of the whole process, without arrivals

	control Control
	rng     *rand.Rand
}

// outcome counts the arrivals of one level after the warm-up by their result.
type outcome struct {
	offered, good, refused float64
	waits                  []time.Duration // times to the answer of requests answered in time
}

// waiting is a goroutine in the queue, or one that sleeps until it enters the queue.
type waiting struct {
	at      time.Duration
	hog     bool
	stream  bool
	lv      int
	came    time.Duration // arrival of work that was admitted and stopped after a slice
	left    time.Duration
	again   time.Duration // to compute after the time away
	begun   bool
	begunAt time.Duration
}

// asleep holds goroutines that sleep, the next to wake first.
type asleep []waiting

func (a *asleep) add(w waiting) {
	i, _ := slices.BinarySearchFunc(*a, w, func(x, w waiting) int { return cmp.Compare(x.at, w.at+1) })
	*a = slices.Insert(*a, i, w)
}

// slice is how long a goroutine computes while others wait.
const slice = 10 * time.Millisecond

// run simulates the time until stop and counts the requests that arrive after the warm-up. see is
// called after each reading.
func (m *model) run(warmup, stop time.Duration, see func(at time.Duration, c *Control)) (of [Levels]outcome) {
	m.rng = rand.New(rand.NewPCG(7, 7))
	free := make([]time.Duration, m.procs)
	var queue []waiting
	for range m.hogs {
		queue = append(queue, waiting{hog: true})
	}
	var r Reading
	inFlight, took := 0, 0.
	read, coming := time.Duration(0), time.Duration(0)
	var sleeping asleep
	for i := range m.streams {
		at := time.Duration(i) * time.Second / time.Duration(m.streams)
		if m.together {
			at = time.Second / 2
		}
		sleeping.add(waiting{at: at, stream: true})
	}
	next := func() time.Duration { // when the next goroutine enters the queue
		if len(sleeping) > 0 && sleeping[0].at < coming {
			return sleeping[0].at
		}
		return coming
	}
	arrive := func() {
		if next() < coming {
			queue, sleeping = append(queue, sleeping[0]), sleeping[1:]
			return
		}
		lv := 1
		if m.level != nil {
			lv = m.level()
		}
		queue = append(queue, waiting{at: coming, lv: lv})
		if coming >= m.pause[0] && coming < m.pause[1] {
			coming = m.pause[1]
		}
		coming += time.Duration(m.rng.ExpFloat64() / m.rate(coming) * float64(time.Second))
	}
	for {
		p := slices.Index(free, slices.Min(free))
		for now := free[p]; next() <= now || len(queue) == 0; {
			if len(queue) == 0 {
				free[p] = max(free[p], next())
				now = free[p]
			}
			arrive()
		}
		// Goroutines start in the order of their arrival.
		now := free[p]
		if now >= stop {
			return of
		}
		if m.stalls != nil {
			if until := m.stalls(now); until > now {
				free[p] = until
				continue
			}
		}
		if now >= m.pause[0] && now < m.pause[1] {
			free[p] = m.pause[1]
			continue
		}
		w := queue[0]
		queue = queue[1:]
		wait := now - w.at
		if m.rng.IntN(8) == 0 { // the runtime measures one wait in eight
			r.Waited += wait.Seconds()
			r.Squares += wait.Seconds() * wait.Seconds()
		}
		for range 3 { // goroutines that hardly wait
			if m.rng.IntN(8) == 0 {
				r.Waited += 20e-6
				r.Squares += 20e-6 * 20e-6
			}
		}
		if w.hog {
			free[p] = now + slice
			queue = append(queue, waiting{at: free[p], hog: true})
			continue
		}
		if w.stream {
			free[p] = now + m.send
			sleeping.add(waiting{at: w.at + time.Second, stream: true})
			continue
		}
		o := &of[w.lv]
		end := func(w waiting) { // runs one slice of w, or its rest if shorter
			n := min(w.left, slice)
			free[p] = now + n
			if w.left -= n; w.left > 0 {
				w.at = free[p]
				queue = append(queue, w)
				return
			}
			if w.again > 0 {
				w.at, w.left, w.again = free[p]+m.away, w.again, 0
				sleeping.add(w)
				return
			}
			inFlight--
			took += (free[p].Seconds() - w.begunAt.Seconds() - took) / 20
			if d := free[p] - w.came; w.came >= warmup && w.came < stop-m.patience && d <= m.patience {
				o.good++
				o.waits = append(o.waits, d)
			}
		}
		if w.begun {
			end(w)
			continue
		}
		if now >= read {
			r.At, r.Processors, r.Runnable = now, m.procs, len(queue)+1
			r.Service = time.Duration(took * float64(time.Second))
			if m.ignored {
				r.Enforced = 0
			}
			m.control.Read(r)
			r = Reading{}
			read = now + Every
			if see != nil {
				see(now, &m.control)
			}
		}
		r.Enforced++
		r.Arrivals[w.lv]++
		counted := w.at >= warmup && w.at < stop-m.patience
		if counted {
			o.offered++
		}
		if !m.ignored && m.rng.Float64() >= m.control.Shares(0)[w.lv] {
			free[p] = now + m.refusal
			if counted {
				o.refused++
			}
			continue
		}
		if m.limit > 0 && inFlight >= m.limit { // the limiter refuses
			free[p] = now + m.refusal
			continue
		}
		inFlight++
		w.begun, w.begunAt, w.came, w.left = true, now, w.at, time.Duration((0.5+m.rng.Float64())*float64(m.cost))
		if m.away > 0 {
			w.left, w.again = w.left/2, w.left/2
		}
		end(w)
	}
}

func constant(rate float64) func(time.Duration) float64 {
	return func(time.Duration) float64 { return rate }
}

func quantile(of []time.Duration, q float64) time.Duration {
	if len(of) == 0 {
		return 0
	}
	of = slices.Clone(of)
	slices.Sort(of)
	return of[int(q*float64(len(of)-1))]
}

// Without shedding, an overload of one processor makes all requests late. With shedding, goodput is
// close to the capacity, and nearly all requests take less than half a second.
func TestWhatCanBeDoneIsDone(t *testing.T) {
	for _, cost := range []time.Duration{time.Millisecond / 2, 4 * time.Millisecond, 20 * time.Millisecond} {
		for _, procs := range []int{1, 2} {
			for _, load := range []float64{1.2, 1.5, 3, 8} {
				can := float64(procs) / cost.Seconds()
				m := &model{procs: procs, cost: cost, refusal: 40 * time.Microsecond, rate: constant(load * can), patience: time.Second}
				if cost > slice {
					m.limit = 4 * procs // the limiter bounds long work
				}
				o := m.run(4*time.Second, 24*time.Second, nil)[1]
				spent := o.refused * m.refusal.Seconds() / float64(procs) // seconds of 19 that refusals take
				share, p99 := o.good/19/can, quantile(o.waits, .99)
				t.Logf("%v, %d processors, load %.1f: %.3f of what can be done, %.3f with what refusals cost, median %v, p99 %v",
					cost, procs, load, share, share+spent/19, quantile(o.waits, .5), p99)
				if share+spent/19 < .9 || p99 > 500*time.Millisecond {
					t.Errorf("%v, %d processors, load %.1f: %.3f of what can be done, p99 %v", cost, procs, load, share, p99)
				}
			}
		}
	}
}

// Without shedding no request is in time, so the model of the test above is an overload.
func TestNothingIsDoneInTimeWithoutShedding(t *testing.T) {
	m := &model{procs: 1, cost: 4 * time.Millisecond, rate: constant(1.5 / .004), patience: time.Second, ignored: true}
	if o := m.run(4*time.Second, 24*time.Second, nil)[1]; o.good > 0 || o.refused > 0 || m.control.Share() != 1 {
		t.Errorf("of %.0f calls %.0f are in time, %.0f refused", o.offered, o.good, o.refused)
	}
}

// No request is shed if all would be in time.
func TestNothingIsShedWhileProcessorsKeepUp(t *testing.T) {
	half := func(at time.Duration) time.Duration { // a quota of 50 ms in each 100 ms
		if phase := at % (100 * time.Millisecond); phase >= 50*time.Millisecond {
			return at - phase + 100*time.Millisecond
		}
		return 0
	}
	collector := func(at time.Duration) time.Duration { // a stall of 25 ms in each 200 ms
		if phase := at % (200 * time.Millisecond); phase >= 175*time.Millisecond {
			return at - phase + 200*time.Millisecond
		}
		return 0
	}
	stall := func(at time.Duration) time.Duration { // a stall of 90 ms in each 5 s
		if phase := at % (5 * time.Second); phase >= 4910*time.Millisecond {
			return at - phase + 5*time.Second
		}
		return 0
	}
	for name, m := range map[string]*model{
		"0.7":                  {procs: 1, cost: 4 * time.Millisecond, rate: constant(.7 / .004)},
		"0.9":                  {procs: 1, cost: 4 * time.Millisecond, rate: constant(.9 / .004)},
		"0.85 of longer work":  {procs: 2, cost: 9 * time.Millisecond, rate: constant(.85 * 2 / .009)},
		"0.9 of short work":    {procs: 1, cost: 100 * time.Microsecond, rate: constant(.9 / .0001)},
		"half of a processor":  {procs: 1, cost: 4 * time.Millisecond, rate: constant(.4 / .004), stalls: half},
		"stalls of many":       {procs: 64, cost: 300 * time.Microsecond, rate: constant(2000), stalls: stall},
		"pauses":               {procs: 1, cost: 4 * time.Millisecond, rate: constant(.7 / .004), stalls: collector},
		"pauses of short work": {procs: 2, cost: 200 * time.Microsecond, rate: constant(.7 * 2 / .0002), stalls: collector},
	} {
		m.patience = time.Second
		if o := m.run(time.Second, 60*time.Second, nil)[1]; o.refused > 0 || o.good < o.offered {
			t.Errorf("%s: of %.0f %.0f were refused, %.0f in time", name, o.offered, o.refused, o.good)
		}
	}
}

// After the host has stalled the processors for a quarter of a second, the queue drains by itself.
// Hardly any call is shed meanwhile. One call in twenty once was shed: the calls that passed during
// the stall were too few to explain the queue, and the trial began at once.
func TestAStallIsNoOverload(t *testing.T) {
	for _, length := range []time.Duration{150 * time.Millisecond, 250 * time.Millisecond, 350 * time.Millisecond} {
		for load, most := range map[float64]float64{.5: .01, .7: .01, .8: .02} {
			m := &model{procs: 1, cost: 4 * time.Millisecond, refusal: 40 * time.Microsecond, rate: constant(load / .004), patience: time.Second,
				stalls: func(at time.Duration) time.Duration {
					if phase := at % (5 * time.Second); phase >= 5*time.Second-length {
						return at - phase + 5*time.Second
					}
					return 0
				}}
			o := m.run(time.Second, 61*time.Second, nil)[1]
			t.Logf("load %.1f, stalls of %v: of %.0f calls %.0f are refused, %.0f in time", load, length, o.offered, o.refused, o.good)
			if load == .7 && length == 250*time.Millisecond {
				pages.Says(t, "docs/adr/0019-shedding-for-lack-of-processors.md", fmt.Sprintf("%.1f %% of the calls of a model at 0.7 of the capacity are refused", 100*o.refused/o.offered))
			}
			if o.refused > most*o.offered {
				t.Errorf("load %.1f, stalls of %v: of %.0f calls %.0f are refused", load, length, o.offered, o.refused)
			}
		}
	}
}

// The lowest priority is shed first, and the highest is not shed while it fits into the capacity.
func TestTheLeastImportantIsShedFirst(t *testing.T) {
	var m *model
	m = &model{procs: 1, cost: 4 * time.Millisecond, refusal: 40 * time.Microsecond, rate: constant(2 / .004), patience: time.Second,
		level: func() int { return []int{0, 1, 2, 2, 3}[m.rng.IntN(5)] }} // 0.4, 0.4, 0.8, 0.4 of the capacity
	o := m.run(4*time.Second, 34*time.Second, nil)
	got := func(lv int) float64 { return o[lv].good / o[lv].offered }
	if got(0) < .97 || got(1) < .95 || got(2) < .1 || got(2) > .4 || got(3) > .05 {
		t.Errorf("answered are %.3f, %.3f, %.3f and %.3f", got(0), got(1), got(2), got(3))
	}
}

// Shedding ends within a second after an overload, and begins again with the next overload.
func TestSheddingEndsWithTheOverload(t *testing.T) {
	m := &model{procs: 1, cost: 4 * time.Millisecond, refusal: 40 * time.Microsecond, patience: time.Second,
		rate: func(at time.Duration) float64 {
			if at%(20*time.Second) < 10*time.Second {
				return 5 / .004
			}
			return .5 / .004
		}}
	calm, late := time.Duration(0), time.Duration(0)
	m.run(0, 60*time.Second, func(at time.Duration, c *Control) {
		if phase := at % (20 * time.Second); phase > 11*time.Second && c.Share() < 1 {
			late++
		} else if phase > 11*time.Second {
			calm++
		}
	})
	if late > 0 || calm < 300 {
		t.Errorf("a second after the overload %d readings of %d still shed", late, late+calm)
	}
}

// At first more calls arrive than the processors could even refuse, then twice the capacity. Shedding
// once was given up, and then paused for longer than it had lasted.
func TestSheddingSurvivesAPeak(t *testing.T) {
	for _, c := range []struct{ cost, refusal time.Duration }{{500 * time.Microsecond, 40 * time.Microsecond}, {4 * time.Millisecond, 300 * time.Microsecond}} {
		m := &model{procs: 1, cost: c.cost, refusal: c.refusal, patience: time.Second, rate: func(at time.Duration) float64 {
			if at < 5*time.Second {
				return 12 / c.cost.Seconds()
			}
			return 2 / c.cost.Seconds()
		}}
		o := m.run(15*time.Second, 40*time.Second, nil)[1]
		can := 24 / c.cost.Seconds() * (1 - 1*c.refusal.Seconds()/c.cost.Seconds())
		if o.good < .85*can {
			t.Errorf("%v: %.0f of %.0f that can be done are answered in time after a peak", c.cost, o.good, can)
		}
	}
}

// An overload begins with many calls at once, a refusal takes processor time, and the host stalls the
// processor again and again. The wait grows at first although three of four calls are shed. Shedding
// once was given up then, for four seconds.
func TestSheddingIsNotGivenUpWhileTheQueueGrows(t *testing.T) {
	for _, load := range []float64{2, 2.5, 3} {
		for _, burst := range []float64{0, 200, 400, 600} {
			for _, taken := range []time.Duration{0, 20 * time.Millisecond, 60 * time.Millisecond} {
				const refusal = 200 * time.Microsecond
				m := &model{procs: 1, cost: time.Millisecond, refusal: refusal, patience: time.Second,
					rate: func(at time.Duration) float64 {
						switch {
						case at < time.Second:
							return 100
						case at < 1020*time.Millisecond:
							return load*1000 + burst/.02
						}
						return load * 1000
					},
					stalls: func(at time.Duration) time.Duration {
						if phase := at % (200 * time.Millisecond); at > time.Second && phase > 200*time.Millisecond-taken {
							return at - phase + 200*time.Millisecond
						}
						return 0
					}}
				gaveUp := 0
				m.run(time.Second, 11*time.Second, func(_ time.Duration, c *Control) {
					if c.rest > 0 {
						gaveUp++
					}
				})
				if gaveUp > 0 {
					t.Errorf("load %v, %v at once, %v of 200 ms taken: given up, for %d readings", load, burst, taken, gaveUp)
				}
			}
		}
	}
}

// An overload begins during a pause of shedding. The pause ends once the wait has doubled, and goodput
// is then close to the capacity.
func TestAnOverloadEndsThePauseOfShedding(t *testing.T) {
	m := &model{procs: 1, cost: 4 * time.Millisecond, refusal: 40 * time.Microsecond, rate: constant(1.5 / .004), patience: time.Second}
	m.control = Control{began: true, resting: time.Hour, rest: time.Minute, vain: .15}
	o := m.run(4*time.Second, 24*time.Second, nil)[1]
	if can := 19 / .004; o.good < .9*can {
		t.Errorf("%.2f of what can be done is answered in time", o.good/can)
	}
}
