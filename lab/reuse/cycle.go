package reuse

import (
	"context"
	"sync"
	"time"

	"github.com/spillway-go/spillway/lab/turns"
)

type cycleJob struct {
	Players            []player
	Goroutines, Rounds int
	Time               time.Duration
	Seed               uint64
}

type player struct {
	Contestant string
	Size       int
}

// cycle returns the readings of the players.
func cycle(ctx context.Context, j cycleJob) ([][]turns.Reading, error) {
	players := make([]turns.Player, len(j.Players))
	for i, p := range j.Players {
		var c *crew // every turn has a pool of its own: where it lies in memory is luck
		players[i] = turns.Player{
			Name:  p.Contestant,
			Ready: func(n int) error { c = ready(newPool(p.Contestant, p.Size), j.Goroutines, n); return nil },
			Block: func(int) { c.work() },
		}
	}
	return turns.Play(ctx, turns.Config{Rounds: j.Rounds, Time: j.Time, Seed: j.Seed}, players)
}

// crew is goroutines that wait for the beginning of their work.
type crew struct {
	begin chan struct{}
	done  sync.WaitGroup
}

// ready starts goroutines for n cycles in all. Each has made one before, so that the
// pool is filled.
func ready(p *pool, goroutines, n int) *crew {
	c := &crew{begin: make(chan struct{})}
	var warm sync.WaitGroup
	for i := range goroutines {
		share := n / goroutines
		if i < n%goroutines {
			share++
		}
		warm.Add(1)
		c.done.Go(func() {
			p.cycles(1)
			warm.Done()
			<-c.begin
			p.cycles(share)
		})
	}
	warm.Wait()
	return c
}

// work returns when all have done their share.
func (c *crew) work() {
	close(c.begin)
	c.done.Wait()
}
