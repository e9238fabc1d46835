package workerpool

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// shape is work that computes, in slices as the runtime does, and then waits.
type shape struct {
	perSecond       float64
	computes, waits time.Duration
}

// machine simulates processors, on which jobs take turns.
type machine struct {
	processors chan struct{}
	spread     float64 // standard deviation of the logarithm of a job's computing time
}

// jobOf returns a job. Its slices differ from those of other jobs. Events at the same instant of
// virtual time run in arbitrary order, and the first event changes all that follow.
func (m machine) jobOf(s shape, r *rand.Rand) Job {
	left := time.Duration(float64(s.computes) * math.Exp(m.spread*r.NormFloat64()))
	slice := max(100*time.Microsecond, s.computes/16)
	slice += time.Duration(r.Int64N(int64(slice / 4)))
	return func(ctx context.Context) error {
		for ; left > 0 && ctx.Err() == nil; left -= slice {
			m.processors <- struct{}{}
			time.Sleep(slice)
			<-m.processors
		}
		if s.waits == 0 { // no timer of 0 in a bubble, it brings down the race detector: go.dev/issue/78156
			return ctx.Err()
		}
		select {
		case <-time.After(s.waits):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// steal keeps processors busy for a share of the time, in random spells, as other programs on the
// machine would.
func (m machine) steal(share float64, r *rand.Rand, stop <-chan struct{}) {
	for {
		d := time.Duration(r.ExpFloat64() * float64(time.Millisecond))
		m.processors <- struct{}{}
		time.Sleep(d)
		<-m.processors
		select {
		case <-stop:
			return
		case <-time.After(1 + time.Duration(float64(d)*(1/(share*float64(cap(m.processors)))-1))):
		}
	}
}

// play offers work for d. It returns how many jobs a second ended in time, and the mean limit over
// the arrivals, because a trial may be under way at any one moment.
func (m machine) play(p *Pool, s shape, d, deadline time.Duration, r *rand.Rand) (done, limit float64) {
	var good atomic.Int64
	begin, arrivals := time.Now(), 0.
	for next := time.Duration(0); ; arrivals++ {
		if next += time.Duration(r.ExpFloat64() / s.perSecond * float64(time.Second)); next > d {
			return float64(good.Load()) / d.Seconds(), limit / arrivals
		}
		limit += float64(p.Limit())
		time.Sleep(next - time.Since(begin))
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		job := m.jobOf(s, r)
		if p.TrySubmit(ctx, func(ctx context.Context) error {
			defer cancel()
			err := job(ctx)
			if err == nil {
				good.Add(1)
			}
			return err
		}) != nil {
			cancel()
		}
	}
}

// adaptation is changing work on two processors, with the goals that a pool without a fixed size
// must reach five seconds after each change.
type adaptation struct {
	name      string
	seeds     int // in the gate; the soak plays four of each
	noise     float64
	phases    []shape
	sizes     []int
	share     float64   // least throughput, as a share of the best fixed size's
	atTheMost []float64 // most jobs at once
}

// adaptations are cases whose results hardly differ from run to run. Events at the same instant of
// virtual time come in any order, so that where jobs only compute one run in hundreds differs: the
// middle of three decides. Where jobs compute a little and wait a lot, latency rises
// with each worker long before the processors are busy. A law that avoided the rise settled at 16
// to 20 jobs at once, although 32 do a third more.
func adaptations() []adaptation {
	const ms = time.Millisecond
	computes := []shape{{750, 4 * ms, 0}, {750, 8 * ms, 0}, {750, 4 * ms, 0}}
	waits := []shape{{1000, 0, 20 * ms}, {1000, 0, 80 * ms}, {1000, 0, 20 * ms}}
	both := []shape{{1300, 2 * ms, 20 * ms}, {1300, 2 * ms, 80 * ms}, {1300, 2 * ms, 20 * ms}}
	many := []shape{{20_000, 200 * time.Microsecond, 20 * ms}}
	return []adaptation{
		{"computes", 3, 0, computes, []int{2, 4, 8}, 0.85, []float64{4, 4, 4}},
		{"computes, on a busy machine", 2, 0.5, computes, []int{2, 4, 8}, 0.8, []float64{24, 24, 24}},
		{"both", 0, 0, both, []int{16, 32, 64, 128}, 0.75, []float64{100, 160, 100}},
		{"both, on a busy machine", 2, 0.4, both, []int{32, 64}, 0.75, []float64{100, 160, 100}},
		{"computes for a moment, many at once", 0, 0.4, many, []int{128, 256}, 0.85, []float64{2 * 202}},
		{"waits", 2, 0, waits, []int{128}, 0.95, []float64{100, 200, 200}},
	}
}

// run returns the work done and the mean limit in each phase, with or without a fixed size.
func (c adaptation) run(t *testing.T, n int, settle time.Duration, seed uint64) (done, limits []float64) {
	const (
		procs    = 2
		deadline = 200 * time.Millisecond
		measured = 4 * time.Second // measured over one second, single runs did 270 to 900 jobs instead of 700
	)
	synctest.Test(t, func(t *testing.T) {
		p := pool(t, Config{MinWorkers: n, MaxWorkers: n})
		if n == 0 {
			p.ctl.minLimit = procs
		}
		r := rand.New(rand.NewPCG(seed, 1))
		m := machine{processors: make(chan struct{}, procs), spread: c.noise}
		stop := make(chan struct{})
		var others sync.WaitGroup
		if c.noise > 0 {
			others.Go(func() { m.steal(0.15, rand.New(rand.NewPCG(seed, 2)), stop) })
		}
		for _, s := range c.phases {
			m.play(p, s, settle, deadline, r)
			rate, limit := m.play(p, s, measured, deadline, r)
			done, limits = append(done, rate), append(limits, limit)
		}
		close(stop)
		others.Wait()
		if err := p.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return done, limits
}

// check plays a number of seeds. For each phase it passes two figures to judge: the throughput as a
// share of the best size's, and how many jobs ran at once.
func (c adaptation) check(t *testing.T, seeds int, judge func(s shape, share, atOnce, most float64)) {
	best := make([]float64, len(c.phases))
	for _, n := range c.sizes {
		done, _ := c.run(t, n, time.Second, 1)
		for i := range best {
			best[i] = max(best[i], done[i])
		}
	}
	done, limits := make([][]float64, len(best)), make([][]float64, len(best))
	for seed := range seeds {
		d, l := c.run(t, 0, 5*time.Second, uint64(seed))
		for i := range best {
			done[i], limits[i] = append(done[i], d[i]), append(limits[i], l[i])
		}
	}
	middle := func(of []float64) float64 {
		slices.Sort(of)
		return (of[(len(of)-1)/2] + of[len(of)/2]) / 2
	}
	for i, s := range c.phases {
		did, atOnce := middle(done[i]), middle(limits[i])
		t.Logf("%v and %v: %.0f/s of %.0f with %.0f at once", s.computes, s.waits, did, best[i], atOnce)
		judge(s, did/best[i], atOnce, c.atTheMost[i])
	}
}

// Five seconds after the start, and after each change of the work, a pool without a fixed size does
// most of the work that the best fixed size does. The pool does not run many more jobs at once than
// pay off.
func TestWithoutANumberAPoolDoesMostOfWhatTheBestSizeDoes(t *testing.T) {
	all := adaptations()
	if raceEnabled { // ten times as slow, and the cases are about the law
		all = all[len(all)-1:]
		all[0].seeds = 1
	}
	for _, c := range all {
		if c.seeds == 0 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			c.check(t, c.seeds, func(s shape, share, atOnce, most float64) {
				if share < c.share || atOnce > most {
					t.Errorf("%v and %v: %.2f of the best with %.0f at once, want %.2f with %.0f at most", s.computes, s.waits, share, atOnce, c.share, most)
				}
			})
		})
	}
}
