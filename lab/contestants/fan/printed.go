package main

import (
	"context"
	"time"

	"github.com/spillway-go/spillway/lab/bubble"
	"github.com/spillway-go/spillway/lab/contestants/fan/specimen"
	"github.com/spillway-go/spillway/lab/fan"
)

// playPrinted calls the published lookup as printed, whose sources return slices, and counts the
// answers that were lost. A slice is three words: a reader that sees the length and not yet the
// pointer ends the process.
func playPrinted(ctx context.Context, p fan.Printed) (map[string]float64, error) {
	if p.Wait > 0 {
		return bubble.Func(countLost)(ctx, p)
	}
	return countLost(ctx, p)
}

func countLost(ctx context.Context, p fan.Printed) (map[string]float64, error) {
	source := func(ids ...int) func(context.Context, query) ([]user, error) {
		var found []user
		for _, id := range ids {
			found = append(found, user{ID: id})
		}
		return func(context.Context, query) ([]user, error) {
			time.Sleep(p.Wait)
			return found, nil
		}
	}
	printed := specimen.Lookup[query, []user, int]{
		Database: source(1, 2),
		Caches:   []func(context.Context, query) ([]user, error){source(3)},
		Merge: func(database []user, caches [][]user) (sum int) {
			for _, list := range append(caches, database) {
				for _, u := range list {
					sum += u.ID
				}
			}
			return sum
		},
	}
	lost := 0
	for range p.Calls {
		sum, err := printed.Find(ctx, query{})
		if err != nil {
			return nil, err
		}
		if sum != 1+2+3 {
			lost++
		}
	}
	return map[string]float64{"harmed": float64(lost)}, nil
}
