package shapes

import (
	"context"
	"fmt"
	"time"

	"github.com/spillway-go/spillway/lab/turns"
)

// Job is the input of a process in which contestants take turns.
type Job struct {
	Shapes    []Shape
	Rounds    int
	Time      time.Duration // of a turn
	Collector bool          // runs in turns, too
	Seed      uint64
}

// inTurns returns the readings of the shapes. The start of the workers is not in them.
func inTurns(ctx context.Context, j Job) ([][]turns.Reading, error) {
	players := make([]turns.Player, len(j.Shapes))
	for i, s := range j.Shapes {
		var run Batch
		var lost error
		players[i] = turns.Player{
			Name:  s.label(),
			Ready: func(int) (err error) { run, err = s.Prepare(); return err },
			Block: func(n int) { lost = s.check(n, run(n)) },
			Done:  func() error { return lost },
		}
	}
	return turns.Play(ctx, turns.Config{Rounds: j.Rounds, Time: j.Time, Seed: j.Seed, Collector: j.Collector}, players)
}

type batchJob struct {
	Shape Shape
	Ops   int
}

// byTheClock times one batch with two calls of time.Now: cold, once, with all set-up.
func byTheClock(_ context.Context, j batchJob) (map[string]float64, error) {
	began := time.Now()
	run, err := j.Shape.Prepare()
	if err != nil {
		return nil, err
	}
	sum := run(j.Ops)
	took := time.Since(began)
	return map[string]float64{"ns": float64(took) / float64(j.Ops)}, j.Shape.check(j.Ops, sum)
}

func (s Shape) check(n int, sum int64) error {
	if want := sumOf(n); sum != want {
		return fmt.Errorf("%s lost results: the sum over %d is %d, want %d", s.label(), n, sum, want)
	}
	return nil
}
