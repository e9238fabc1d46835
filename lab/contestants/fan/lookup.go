package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/sourcegraph/conc"
	"golang.org/x/sync/errgroup"

	"github.com/spillway-go/spillway/fanout"
	"github.com/spillway-go/spillway/lab/burn"
	"github.com/spillway-go/spillway/lab/contestants/fan/specimen"
	"github.com/spillway-go/spillway/lab/fan"
)

// query selects users.
type query struct{ Email, Org string }

type user struct {
	ID         int
	Email, Org string
}

// users is an answer. That of a source is shared and read-only.
type users struct{ list []user }

// add merges the answer of a source, without duplicates. The lists are short.
func (u *users) add(more *users) {
	if more == nil {
		return
	}
	for _, x := range more.list {
		if !slices.ContainsFunc(u.list, func(have user) bool { return have.ID == x.ID }) {
			u.list = append(u.list, x)
		}
	}
}

// find is one source.
type find = func(context.Context, query) (*users, error)

// sources are a database and the caches beside it.
type sources struct {
	Database find
	Caches   []find
}

// spend returns a function that takes d in that way.
func spend(kind string, d time.Duration) func() {
	switch kind {
	case fan.Computing, fan.OneProc:
		return burn.For(d)
	case fan.Yielding:
		return func() {
			for began := time.Now(); time.Since(began) < d; {
				runtime.Gosched()
			}
		}
	}
	return func() { time.Sleep(d) }
}

// newSources makes a database and caches. The database has two users, each cache one
// of these and one of its own.
func newSources(kind string, t fan.Table) sources {
	s := sources{Database: source(spend(kind, t.Database), nil, 1, 2)}
	wait := spend(kind, t.Cache)
	for i := range t.Sources - 1 {
		s.Caches = append(s.Caches, source(wait, nil, 2, 3+i))
	}
	return s
}

// source spends its time and then fails, or finds the users of these ids. It ignores its
// context, as published.
func source(spend func(), err error, ids ...int) find {
	found := &users{}
	for _, id := range ids {
		found.list = append(found.list, user{id, "ada@example.org", "org-1"})
	}
	if err != nil {
		found = nil
	}
	return func(context.Context, query) (*users, error) {
		spend()
		return found, err
	}
}

// lookup merges the answers of all sources. Its error is the database's.
type lookup func(context.Context, query) (users, error)

// newLookup makes a contestant. Contestants share no state.
func newLookup(name string, s sources, t fan.Table) (look lookup, err error) {
	cfg := configs[name]
	if t.Levels < 2 {
		return s.lookup(name, cfg)
	}
	if cfg.Bulkhead, err = fanout.NewBulkhead(t.Budget); err != nil {
		return nil, err
	}
	level := func(ctx context.Context, q query) (*users, error) {
		see(runtime.NumGoroutine())
		return s.Database(ctx, q)
	}
	for range t.Levels {
		below, err := sources{level, slices.Repeat([]find{level}, t.Sources-1)}.lookup(name, cfg)
		if err != nil {
			return nil, err
		}
		look = below
		level = func(ctx context.Context, q query) (*users, error) {
			found, err := below(ctx, q)
			return &found, err
		}
	}
	return look, nil
}

// whole is how many users a complete lookup finds. Those below others all find the same.
func whole(t fan.Table) int {
	if t.Levels > 1 {
		return 2
	}
	return 1 + t.Sources
}

// configs are those of the contestants that are ours.
var configs = map[string]fanout.Config{
	fan.Spillway:   {},
	fan.InParallel: {Mode: fanout.Parallel},
}

func (s sources) lookup(name string, cfg fanout.Config) (lookup, error) {
	others := map[string]lookup{
		fan.Sequential: s.sequential, fan.AsPrinted: s.asPrinted, fan.Corrected: s.corrected, fan.ErrGroup: s.errgroup, fan.Conc: s.conc,
	}
	if look := others[name]; look != nil {
		return look, nil
	}
	if _, known := configs[name]; !known {
		return nil, fmt.Errorf("unknown contestant %q", name)
	}
	f, err := newFanout(s, cfg)
	return func(ctx context.Context, q query) (users, error) {
		got, err := f.Do(ctx, q)
		return got.Value, err
	}, err
}

func (s sources) sequential(ctx context.Context, q query) (users, error) {
	var all users
	found, err := s.Database(ctx, q)
	if err != nil {
		return users{}, err
	}
	all.add(found)
	for _, cache := range s.Caches {
		if found, err := cache(ctx, q); err == nil {
			all.add(found)
		}
	}
	return all, nil
}

func (s sources) asPrinted(ctx context.Context, q query) (users, error) {
	return specimen.Lookup[query, *users, users]{Database: s.Database, Caches: s.Caches, Merge: merged}.Find(ctx, q)
}

func merged(database *users, caches []*users) (all users) {
	all.add(database)
	for _, u := range caches {
		all.add(u)
	}
	return all
}

func (s sources) corrected(ctx context.Context, q query) (users, error) {
	return s.waiting(ctx, q, new(sync.WaitGroup))
}

func (s sources) conc(ctx context.Context, q query) (users, error) {
	return s.waiting(ctx, q, new(conc.WaitGroup))
}

// group is a WaitGroup, of sync or conc.
type group interface {
	Go(func())
	Wait()
}

// waiting waits before it reads, and nothing else: the least change that loses no
// answer.
func (s sources) waiting(ctx context.Context, q query, g group) (users, error) {
	cached := make([]*users, len(s.Caches))
	for i, cache := range s.Caches {
		g.Go(func() { cached[i], _ = cache(ctx, q) })
	}
	found, err := s.Database(ctx, q)
	g.Wait()
	if err != nil {
		return users{}, err
	}
	return merged(found, cached), nil
}

// errgroup gives each source a goroutine. An error of a cache must not reach the
// group, which would make it fatal.
func (s sources) errgroup(ctx context.Context, q query) (users, error) {
	var found *users
	cached := make([]*users, len(s.Caches))
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		found, err = s.Database(ctx, q)
		return err
	})
	for i, cache := range s.Caches {
		g.Go(func() error {
			cached[i], _ = cache(ctx, q)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return users{}, err
	}
	return merged(found, cached), nil
}

func newFanout(s sources, cfg fanout.Config) (*fanout.Fanout[query, users], error) {
	branches := []fanout.Branch[query, users]{fanout.Required("database", s.Database, (*users).add)}
	for i, cache := range s.Caches {
		branches = append(branches, fanout.Optional("cache "+strconv.Itoa(i+1), cache, (*users).add))
	}
	return fanout.New(cfg, branches...)
}
