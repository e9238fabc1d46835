package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// work asks a backend for one piece of work and waits for its answer.
type work func(ctx context.Context) error

const (
	ramps     = 4                      // up, down, up and down
	warmUp    = 200 * time.Millisecond // until the workers of a level are measured
	timed     = 300 * time.Millisecond // of each level on each ramp
	watched   = 10 * time.Second       // of the series
	interval  = 50 * time.Millisecond  // of the series and the step
	afterStep = time.Second
	stepTo    = 64
	parts     = 20 // of the latencies of a level
)

var levels = []int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128}

// recording is what a backend did.
type recording struct {
	levels []level
	at     int       // workers of the series
	series []float64 // answers in each interval, relative to their mean
	step   []float64 // answers in each interval after a step from 1 worker to stepTo, relative to their mean there
}

// level is what a backend did for so many workers.
type level struct {
	workers   int
	rate      float64         // answers a second
	latencies []time.Duration // of work that began after the warm-up
}

// answer is one answer, at a time after the warm-up.
type answer struct{ at, took time.Duration }

// record goes up and down the levels, and then stays at the fewest workers that get nearly the most
// answers. All ramps of a level count alike, since a machine is slower for some seconds, or from then on.
func record(ctx context.Context, do work) (*recording, error) {
	r := &recording{}
	for _, n := range levels {
		r.levels = append(r.levels, level{workers: n})
	}
	for range ramps {
		for i := range r.levels {
			l := &r.levels[i]
			answers, err := ask(ctx, do, l.workers, warmUp, timed)
			if err != nil {
				return nil, err
			}
			l.rate += rate(answers, timed) / ramps
			for _, a := range answers {
				if a.at >= a.took { // work from before would be what takes long
					l.latencies = append(l.latencies, a.took)
				}
			}
		}
		slices.Reverse(r.levels)
	}
	for i := range r.levels {
		l := &r.levels[i]
		if l.rate == 0 || len(l.latencies) == 0 {
			return nil, fmt.Errorf("no answer to %d workers", l.workers)
		}
		slices.Sort(l.latencies)
	}
	enough := slices.IndexFunc(r.levels, func(l level) bool { return l.rate >= .95*r.best().rate })
	r.at = r.levels[enough].workers
	answers, err := ask(ctx, do, r.at, warmUp, watched)
	if err != nil {
		return nil, err
	}
	r.series = relative(answers, watched, rate(answers, watched))
	if _, err := ask(ctx, do, 1, 0, warmUp); err != nil {
		return nil, err
	}
	if answers, err = ask(ctx, do, stepTo, 0, afterStep); err != nil {
		return nil, err
	}
	r.step = relative(answers, afterStep, r.levels[slices.Index(levels, stepTo)].rate)
	return r, nil
}

// ask has so many workers ask back to back, and returns the answers that came after the warm-up. Work that runs at the
// end of the time is awaited, and its answers are among them.
func ask(ctx context.Context, do work, workers int, warmUp, timed time.Duration) ([]answer, error) {
	group, ctx := errgroup.WithContext(ctx)
	each := make([][]answer, workers)
	began := time.Now()
	for i := range workers {
		group.Go(func() error {
			for {
				asked := time.Now()
				if asked.Sub(began) >= warmUp+timed {
					return nil
				}
				if err := do(ctx); err != nil {
					return err
				}
				now := time.Now()
				if at := now.Sub(began) - warmUp; at >= 0 {
					each[i] = append(each[i], answer{at, now.Sub(asked)})
				}
			}
		})
	}
	err := group.Wait()
	return slices.Concat(each...), err
}

// rate returns the answers a second.
func rate(answers []answer, in time.Duration) (n float64) {
	for _, a := range answers {
		if a.at < in {
			n += 1 / in.Seconds()
		}
	}
	return n
}

// relative returns the answers of each interval, relative to a rate.
func relative(answers []answer, of time.Duration, rate float64) []float64 {
	series := make([]float64, of/interval)
	for _, a := range answers {
		if a.at < of {
			series[a.at/interval] += 1 / (rate * interval.Seconds())
		}
	}
	return series
}

func (r *recording) best() level {
	return slices.MaxFunc(r.levels, func(a, b level) int { return int(a.rate) - int(b.rate) })
}

// String is the text that package sim reads.
func (r *recording) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# level: workers, answers a second, and the mean milliseconds of each of %d parts of the answers, the quickest first\n", parts)
	for _, l := range r.levels {
		fmt.Fprintf(&b, "level %d %.1f", l.workers, l.rate)
		for i := range parts {
			n := len(l.latencies)
			from := min(i*n/parts, n-1)
			fmt.Fprintf(&b, " %.3g", mean(l.latencies[from:max((i+1)*n/parts, from+1)]))
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "# series: workers, and the answers in each %v relative to their mean\nseries %d%s\n", interval, r.at, numbers(r.series))
	fmt.Fprintf(&b, "# step: from 1 worker to so many, and the answers in each %v after that, relative to the level's\nstep %d%s\n", interval, stepTo, numbers(r.step))
	return b.String()
}

// mean returns milliseconds.
func mean(latencies []time.Duration) (ms float64) {
	for _, l := range latencies {
		ms += float64(l) / float64(time.Millisecond) / float64(len(latencies))
	}
	return ms
}

func numbers(all []float64) string {
	var b strings.Builder
	for _, x := range all {
		fmt.Fprintf(&b, " %.2f", x)
	}
	return b.String()
}
