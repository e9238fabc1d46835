package fan

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
	"github.com/spillway-go/spillway/lab/fan/specimen"
)

// query selects users.
type query struct{ Email, Org string }

type user struct {
	ID         int
	Email, Org string
}

// users is the answer of one source. Sources share it; it is read-only.
type users struct{ list []user }

// answer is the merged result of a lookup.
type answer struct{ Users []user }

// add merges the answer of a source, without duplicates. The lists are short.
func (a *answer) add(u *users) {
	if u == nil {
		return
	}
	for _, x := range u.list {
		if !slices.ContainsFunc(a.Users, func(have user) bool { return have.ID == x.ID }) {
			a.Users = append(a.Users, x)
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

// How a source spends its time.
const (
	Virtual   = "virtual time"             // it waits, and the clock is virtual
	Sleeping  = "sleeping"                 // it waits by time.Sleep
	Yielding  = "waiting that yields"      // it waits in a loop of runtime.Gosched
	Computing = "computing"                // it computes
	OneProc   = "computing, one processor" // and GOMAXPROCS is 1
)

// spend returns a function that takes d in that way.
func spend(kind string, d time.Duration) func() {
	switch kind {
	case Computing, OneProc:
		return burn.For(d)
	case Yielding:
		return func() {
			for began := time.Now(); time.Since(began) < d; {
				runtime.Gosched()
			}
		}
	}
	return func() { time.Sleep(d) }
}

// newSources makes a database and n−1 caches. The database has two users, each cache
// one of these and one of its own.
func newSources(kind string, n int, database, cache time.Duration) sources {
	source := func(spend func(), ids ...int) find {
		found := &users{}
		for _, id := range ids {
			found.list = append(found.list, user{id, "ada@example.org", "org-1"})
		}
		return func(context.Context, query) (*users, error) {
			spend()
			return found, nil
		}
	}
	s := sources{Database: source(spend(kind, database), 1, 2)}
	wait := spend(kind, cache)
	for i := range n - 1 {
		s.Caches = append(s.Caches, source(wait, 2, 3+i))
	}
	return s
}

// whole is how many users a complete lookup finds.
func (s sources) whole() int { return 2 + len(s.Caches) }

// The contestants.
const (
	Sequential = "sequential"
	AsPrinted  = "as-printed"
	Corrected  = "corrected"
	ErrGroup   = "errgroup"
	Conc       = "conc"
	Spillway   = "spillway"

	// Spillway configured to be parallel, the mode in which it starts and runs waiting
	// branches; and the same with contexts that no branch keeps.
	InParallel = "spillway-parallel"
	Borrowed   = "spillway-borrowed"
)

// Names lists the contestants.
func Names() []string {
	return []string{Spillway, Sequential, AsPrinted, Corrected, ErrGroup, Conc}
}

// lookup merges the answers of all sources. Its error is the database's.
type lookup func(context.Context, query) (answer, error)

// newLookup makes a contestant. Contestants share no state.
func newLookup(name string, s sources) (lookup, error) {
	switch name {
	case Sequential:
		return s.sequential, nil
	case AsPrinted:
		return s.asPrinted(), nil
	case Corrected:
		return s.corrected, nil
	case ErrGroup:
		return s.errgroup, nil
	case Conc:
		return s.conc, nil
	}
	cfg, ok := configs[name]
	if !ok {
		return nil, fmt.Errorf("unknown contestant %q", name)
	}
	f, err := newFanout(s, cfg)
	if err != nil {
		return nil, err
	}
	return ours(f), nil
}

// configs are those of the contestants that are ours.
var configs = map[string]fanout.Config{
	Spillway:   {Name: "users"},
	InParallel: {Name: "users", Mode: fanout.Parallel},
	Borrowed:   {Name: "users", Mode: fanout.Parallel, BorrowedContext: true},
}

func (s sources) sequential(ctx context.Context, q query) (answer, error) {
	var a answer
	found, err := s.Database(ctx, q)
	if err != nil {
		return answer{}, err
	}
	a.add(found)
	for _, cache := range s.Caches {
		if found, err := cache(ctx, q); err == nil {
			a.add(found)
		}
	}
	return a, nil
}

func (s sources) asPrinted() lookup {
	l := specimen.Lookup[query, *users]{Database: s.Database, Caches: s.Caches, Merge: func(database *users, caches []*users) *users {
		a := merged(database, caches)
		return &users{a.Users}
	}}
	return func(ctx context.Context, q query) (answer, error) {
		found, err := l.Find(ctx, q, true)
		if err != nil {
			return answer{}, err
		}
		return answer{found.list}, nil
	}
}

func merged(database *users, caches []*users) (a answer) {
	a.add(database)
	for _, u := range caches {
		a.add(u)
	}
	return a
}

// corrected waits before it reads, and nothing else: the least change that loses
// no answer.
func (s sources) corrected(ctx context.Context, q query) (answer, error) {
	cached := make([]*users, len(s.Caches))
	var wg sync.WaitGroup
	for i, cache := range s.Caches {
		wg.Go(func() { cached[i], _ = cache(ctx, q) })
	}
	found, err := s.Database(ctx, q)
	wg.Wait()
	if err != nil {
		return answer{}, err
	}
	return merged(found, cached), nil
}

// errgroup gives each source a goroutine. An error of a cache must not reach the
// group, which would make it fatal.
func (s sources) errgroup(ctx context.Context, q query) (answer, error) {
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
		return answer{}, err
	}
	return merged(found, cached), nil
}

func (s sources) conc(ctx context.Context, q query) (answer, error) {
	cached := make([]*users, len(s.Caches))
	var wg conc.WaitGroup
	for i, cache := range s.Caches {
		wg.Go(func() { cached[i], _ = cache(ctx, q) })
	}
	found, err := s.Database(ctx, q)
	wg.Wait()
	if err != nil {
		return answer{}, err
	}
	return merged(found, cached), nil
}

func newFanout(s sources, cfg fanout.Config) (*fanout.Fanout[query, answer], error) {
	branches := []fanout.Branch[query, answer]{fanout.Required("database", s.Database, (*answer).add)}
	for i, cache := range s.Caches {
		branches = append(branches, fanout.Optional("cache "+strconv.Itoa(i+1), cache, (*answer).add))
	}
	return fanout.New(cfg, branches...)
}

func ours(f *fanout.Fanout[query, answer]) lookup {
	return func(ctx context.Context, q query) (answer, error) {
		got, err := f.Do(ctx, q)
		return got.Value, err
	}
}
