// Package turns compares players in one process: each plays short blocks, in turns and
// in a new order every round, so that whatever else the machine does meets all of them
// alike. Processes in turns differ from themselves by several per cent; blocks of some
// ten milliseconds in one process, compared within a round, by about one.
package turns

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"time"
)

// Player is one of those that are compared.
type Player struct {
	Name  string
	Block func(n int)       // does its work n times; only this is measured
	Ready func(n int) error // before every block, starts and warms what it needs; may be nil
	Done  func() error      // after every block, checks and ends it; may be nil
}

// Config says how to play.
type Config struct {
	Rounds int
	Time   time.Duration        // that a block should take
	Least  int                  // of n, for work that is divided; 0: 1
	Seed   uint64               // of the order
	Clock  func() time.Duration // such as the processor time of the process; nil: the time that passes
}

// Reading is what one block took.
type Reading struct {
	N              int
	Clock, Wall    time.Duration // by Config.Clock, and the time that passed
	Mallocs, Bytes uint64
	Pauses         []time.Duration // of each collection that ended in the block
}

// Play returns a reading of every round for each player, in the order of the players.
// The first round is a warm-up that finds out how much work a block is. A collection
// before every block keeps the garbage of one player from the next.
func Play(ctx context.Context, c Config, players []Player) ([][]Reading, error) {
	if c.Clock == nil {
		began := time.Now()
		c.Clock = func() time.Duration { return time.Since(began) }
	}
	rng := rand.New(rand.NewPCG(c.Seed, 11))
	sizes := make([]int, len(players))
	out := make([][]Reading, len(players))
	for round := range c.Rounds + 1 {
		for _, i := range rng.Perm(len(players)) {
			one, err := c.turn(ctx, players[i], &sizes[i])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", players[i].Name, err)
			}
			if round > 0 {
				out[i] = append(out[i], one)
			}
		}
	}
	return out, nil
}

// turn plays one block; without a size it plays larger and larger ones until one takes
// about as long as it should.
func (c Config) turn(ctx context.Context, p Player, size *int) (Reading, error) {
	if *size > 0 {
		return c.block(ctx, p, *size)
	}
	for n := max(c.Least, 1); ; {
		one, err := c.block(ctx, p, n)
		if err != nil {
			return one, err
		}
		// The first blocks are cold: what they say holds for a few times as much work.
		grow := float64(c.Time) / float64(max(one.Wall, 1))
		if *size = max(int(float64(n)*grow), c.Least, 1); grow <= 2 || *size > math.MaxInt32 {
			return one, nil
		}
		n = max(int(float64(n)*min(grow, 8)), n+1)
	}
}

func (c Config) block(ctx context.Context, p Player, n int) (r Reading, err error) {
	if err := ctx.Err(); err != nil {
		return r, err
	}
	if p.Ready != nil {
		if err := p.Ready(n); err != nil {
			return r, err
		}
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began, used := time.Now(), c.Clock()
	p.Block(n)
	r = Reading{N: n, Clock: c.Clock() - used, Wall: time.Since(began)}
	runtime.ReadMemStats(&after)
	r.Mallocs, r.Bytes = after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc
	// The runtime keeps the latest pauses only, in a ring.
	for i := after.NumGC - min(after.NumGC-before.NumGC, uint32(len(after.PauseNs))); i < after.NumGC; i++ {
		r.Pauses = append(r.Pauses, time.Duration(after.PauseNs[i%uint32(len(after.PauseNs))]))
	}
	if p.Done != nil {
		err = p.Done()
	}
	return r, cmp.Or(err, ctx.Err())
}

// Each is a figure of every reading, for one time that the work was done.
func Each(readings []Reading, figure func(Reading) float64) []float64 {
	out := make([]float64, len(readings))
	for i, r := range readings {
		out[i] = figure(r) / float64(r.N)
	}
	return out
}

// Figures for Each.
func Nanos(r Reading) float64     { return float64(r.Clock) }
func WallNanos(r Reading) float64 { return float64(r.Wall) }
func Mallocs(r Reading) float64   { return float64(r.Mallocs) }
func Bytes(r Reading) float64     { return float64(r.Bytes) }
