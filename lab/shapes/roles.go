package shapes

import (
	"context"
	"fmt"
	"time"

	"github.com/spillway-go/spillway/lab/turns"
)

// player has workers of its own in every block, whose start is not in it.
func (s Shape) player() (turns.Player, error) {
	prepare, err := s.preparing()
	var run Batch
	var lost error
	return turns.Player{
		Name:  s.label(),
		Ready: func(int) error { run = prepare(); return nil },
		Block: func(n int) { lost = s.check(n, run(n)) },
		Done:  func() error { return lost },
	}, err
}

type batchJob struct {
	Shape Shape
	Ops   int
}

// byTheClock times one batch with two calls of time.Now: cold, once, with all set-up.
func byTheClock(_ context.Context, j batchJob) (map[string]float64, error) {
	began := time.Now()
	prepare, err := j.Shape.preparing()
	if err != nil {
		return nil, err
	}
	sum := prepare()(j.Ops)
	took := time.Since(began)
	return map[string]float64{"ns": float64(took) / float64(j.Ops)}, j.Shape.check(j.Ops, sum)
}

func (s Shape) check(n int, sum int64) error {
	if want := sumOf(n); sum != want {
		return fmt.Errorf("%s lost results: the sum over %d is %d, want %d", s.label(), n, sum, want)
	}
	return nil
}
