// Package turns compares players in one process: each plays short blocks, in turns and
// in a new order every round, so that whatever else the machine does meets all of them
// alike. Processes in turns differ from themselves by several per cent; blocks of some
// milliseconds in one process, compared within a round, by about one.
//
// A garbage collection runs between two blocks and none within: one more or less would
// be several per cent of a block, and which player has it would be chance. Instead a
// block is charged for its garbage: Reading.Collector.
package turns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/load/usage"
)

// Player is one of those that are compared.
type Player struct {
	Name  string
	Block func(n int)       // does its work n times; only this is measured
	Ready func(n int) error // before every block, starts and warms what it needs; may be nil
	Done  func() error      // after every block, checks and ends it; may be nil
}

// Begin makes the player ready for a block of n.
func (p Player) Begin(n int) error {
	if p.Ready == nil {
		return nil
	}
	return p.Ready(n)
}

// End checks and ends the block.
func (p Player) End() error {
	if p.Done == nil {
		return nil
	}
	return p.Done()
}

// Config says how to play.
type Config struct {
	Rounds int
	Time   time.Duration        // that a block should take
	Least  int                  // of n, for work that is divided; 0: 1
	Seed   uint64               // of the order
	Clock  func() time.Duration `json:"-"` // such as usage.CPU, 0 where there is none; nil: the time that passes

	Collector bool // runs within blocks as outside of the game, and blocks are charged for nothing
}

// Game is what the process of a [Role] is told: who plays, and how.
type Game[P any] struct {
	Config
	Players []P
}

// Made are the players, by a function that makes one.
func (g Game[P]) Made(player func(P) (Player, error)) (out []Player, err error) {
	for _, p := range g.Players {
		one, err := player(p)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// Role is a process whose players take turns by a clock, that of Config. It returns their readings.
func Role[P any](clock func() time.Duration, player func(P) (Player, error)) contestant.Role {
	return contestant.Func(func(ctx context.Context, g Game[P]) ([][]Reading, error) {
		players, err := g.Made(player)
		if err != nil {
			return nil, err
		}
		g.Clock = clock
		return Play(ctx, g.Config, players)
	})
}

// Reading is what one block took.
type Reading struct {
	N              int           // times that the work was done
	Clock, Wall    time.Duration // by Config.Clock, and the time that passed
	Mallocs, Bytes uint64

	// Collector is the processor time of as many collections as the garbage would
	// have caused, at the price that is the median of the whole game.
	Collector time.Duration
}

// memoryLimit makes collections run after all, should a block allocate that much.
const memoryLimit = 256 << 20

// Play returns a reading of every round for each player, in the order of the players.
// The first round is a warm-up that finds out how much work a block is.
func Play(ctx context.Context, c Config, players []Player) ([][]Reading, error) {
	if c.Clock == nil {
		began := time.Now()
		c.Clock = func() time.Duration { return time.Since(began) }
	} else if c.Clock() == 0 {
		return nil, errors.New("this system does not tell the processor time of a process")
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(memoryLimit))
	g := &game{Config: c, percent: debug.SetGCPercent(-1), within: -1}
	defer debug.SetGCPercent(g.percent)
	if c.Collector {
		g.within = g.percent
		debug.SetGCPercent(g.within)
	}
	runtime.GC()
	rng := rand.New(rand.NewPCG(c.Seed, 11))
	sizes := make([]int, len(players))
	out := make([][]Reading, len(players))
	for round := range c.Rounds + 1 {
		for _, i := range rng.Perm(len(players)) {
			var err error
			var one Reading
			if round == 0 {
				sizes[i], err = g.calibrate(ctx, players[i])
			} else if one, err = g.block(ctx, players[i], sizes[i]); err == nil {
				out[i] = append(out[i], one)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", players[i].Name, err)
			}
		}
	}
	if c.Collector {
		return out, nil
	}
	slices.Sort(g.prices)
	for _, all := range out {
		for i := range all {
			all[i].Collector = time.Duration(g.prices[len(g.prices)/2] * float64(all[i].Bytes))
		}
	}
	return out, nil
}

// game is what all players share.
type game struct {
	Config
	percent int       // of the collector, outside of the game
	within  int       // likewise, within a block
	prices  []float64 // of a byte, at every collection, in nanoseconds
}

// calibrate plays larger and larger blocks until one takes about as long as it should.
// The fastest of three is believed, because a disturbance only makes a block slower.
func (g *game) calibrate(ctx context.Context, p Player) (n int, err error) {
	for n = max(g.Least, 1); ; {
		took := g.Time
		for range 3 {
			one, err := g.block(ctx, p, n)
			if err != nil {
				return n, err
			}
			if took = min(took, one.Clock); took < g.Time/2 {
				break // soon enough to see that it must grow
			}
		}
		grow := min(float64(g.Time)/float64(max(took, 1)), 10)
		n = max(int(float64(n)*grow), n)
		if grow <= 2 || n > math.MaxInt32 { // or this clock stands still
			return n, nil
		}
	}
}

func (g *game) block(ctx context.Context, p Player, n int) (r Reading, err error) {
	if err := ctx.Err(); err != nil {
		return r, err
	}
	if err := p.Begin(n); err != nil { // after the collection of the block before
		return r, err
	}
	var before, after, last runtime.MemStats
	runtime.ReadMemStats(&before)
	began, used := time.Now(), g.Clock()
	p.Block(n)
	r = Reading{N: n, Clock: g.Clock() - used, Wall: time.Since(began)}
	runtime.ReadMemStats(&after)
	gcBefore, _, _ := usage.Spent()
	runtime.GC()
	gcAfter, _, _ := usage.Spent()
	debug.SetGCPercent(g.percent)
	runtime.ReadMemStats(&last)
	debug.SetGCPercent(g.within)
	r.Mallocs, r.Bytes = after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc
	// Between two collections this much is allocated, with the settings from outside.
	g.prices = append(g.prices, 1e9*(gcAfter-gcBefore)/float64(max(last.NextGC-last.HeapAlloc, 1)))
	return r, cmp.Or(p.End(), ctx.Err())
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
func AllNanos(r Reading) float64  { return float64(r.Clock + r.Collector) }
func WallNanos(r Reading) float64 { return float64(r.Wall) }
func Mallocs(r Reading) float64   { return float64(r.Mallocs) }
func Bytes(r Reading) float64     { return float64(r.Bytes) }
