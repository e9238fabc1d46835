package fan

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/conc"
	"golang.org/x/sync/errgroup"

	"github.com/spillway-go/spillway/fanout"
	"github.com/spillway-go/spillway/lab/burn"
)

// nesting is fan-out within fan-out: width branches, each of which has width
// branches, and so on; those at the bottom compute.
type nesting struct {
	Names        []string
	Width, Depth int
	Leaf         time.Duration
	Budget       int // of extra goroutines, for contestants that have one
	Rounds       int
	Seed         uint64
}

// nested is what one contestant used in one round.
type nested struct {
	NS         float64
	Goroutines float64 // most beside the caller's
}

// tree adds up what is below it.
type tree func(context.Context) (int, error)

// group makes a tree of equal branches.
type group func(width int, branch tree) (tree, error)

// playNested runs all contestants in turns and returns what each used, by round.
func playNested(ctx context.Context, n nesting) ([]map[string]nested, error) {
	rng := rand.New(rand.NewPCG(n.Seed, 2))
	var most atomic.Int64
	work := burn.For(n.Leaf)
	leaf := func(context.Context) (int, error) {
		now := int64(runtime.NumGoroutine())
		for {
			if old := most.Load(); now <= old || most.CompareAndSwap(old, now) {
				break
			}
		}
		work()
		return 1, nil
	}
	trees := map[string]tree{}
	want := 1
	for range n.Depth {
		want *= n.Width
	}
	for _, name := range n.Names {
		of, err := grouping(name, n.Budget)
		if err != nil {
			return nil, err
		}
		t := tree(leaf)
		for range n.Depth {
			if t, err = of(n.Width, t); err != nil {
				return nil, err
			}
		}
		trees[name] = t
		if _, err := t(ctx); err != nil { // warm
			return nil, err
		}
	}
	rounds := make([]map[string]nested, n.Rounds)
	for i := range rounds {
		rounds[i] = map[string]nested{}
		for _, k := range rng.Perm(len(n.Names)) {
			name := n.Names[k]
			runtime.GC()
			before := runtime.NumGoroutine()
			most.Store(int64(before))
			began := time.Now()
			got, err := trees[name](ctx)
			took := time.Since(began)
			if err == nil && got != want {
				err = fmt.Errorf("%s reached %d of %d leaves", name, got, want)
			}
			if err != nil {
				return nil, err
			}
			rounds[i][name] = nested{float64(took), float64(most.Load() - int64(before))}
		}
	}
	return rounds, ctx.Err()
}

func grouping(name string, size int) (group, error) {
	switch name {
	case Sequential:
		return func(width int, branch tree) (tree, error) {
			return func(ctx context.Context) (sum int, err error) {
				for range width {
					n, err := branch(ctx)
					if err != nil {
						return 0, err
					}
					sum += n
				}
				return sum, nil
			}, nil
		}, nil
	case Corrected, Conc:
		return waiting(name), nil
	case ErrGroup:
		return func(width int, branch tree) (tree, error) {
			return func(ctx context.Context) (int, error) {
				var sum atomic.Int64
				g, ctx := errgroup.WithContext(ctx)
				for range width {
					g.Go(func() error {
						n, err := branch(ctx)
						sum.Add(int64(n))
						return err
					})
				}
				err := g.Wait()
				return int(sum.Load()), err
			}, nil
		}, nil
	case Spillway:
		budget, err := fanout.NewBudget(size)
		return func(width int, branch tree) (tree, error) { return fanned(budget, width, branch) }, err
	}
	return nil, fmt.Errorf("%s does not nest here", name)
}

// waiting is a WaitGroup with all branches but one beside the caller.
func waiting(name string) group {
	return func(width int, branch tree) (tree, error) {
		return func(ctx context.Context) (int, error) {
			counts := make([]int, width)
			var by sync.WaitGroup
			var of conc.WaitGroup
			run, wait := by.Go, by.Wait
			if name == Conc {
				run, wait = of.Go, of.Wait
			}
			for i := range width - 1 {
				run(func() { counts[i], _ = branch(ctx) })
			}
			counts[width-1], _ = branch(ctx)
			wait()
			sum := 0
			for _, n := range counts {
				sum += n
			}
			return sum, nil
		}, nil
	}
}

func fanned(budget *fanout.Budget, width int, branch tree) (tree, error) {
	var branches []fanout.Branch[struct{}, int]
	for i := range width {
		branches = append(branches, fanout.Required(strconv.Itoa(i),
			func(ctx context.Context, _ struct{}) (int, error) { return branch(ctx) }, func(sum *int, n int) { *sum += n }))
	}
	f, err := fanout.New(fanout.Config{Budget: budget}, branches...)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (int, error) {
		got, err := f.Do(ctx, struct{}{})
		return got.Value, err
	}, nil
}
