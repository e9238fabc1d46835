package directory

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/cachetest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
)

// source is a database, and a cache, that does as the test says.
type source struct {
	found []patientapi.Clinician
	err   error
	takes time.Duration
	deaf  bool // does not hear that its context has ended
	panic any

	asked int
	cause error // why its context ended
	kept  []patientapi.Clinician
	told  int
}

func (s *source) Clinicians(ctx context.Context, _ patientapi.ClinicianQuery) ([]patientapi.Clinician, error) {
	s.asked++
	if s.panic != nil {
		panic(s.panic)
	}
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	return slices.Clone(s.found), s.err
}

func (s *source) Keep(ctx context.Context, _ patientapi.ClinicianQuery, found []patientapi.Clinician) error {
	s.told++
	if err := s.wait(ctx); err != nil {
		return err
	}
	s.kept = slices.Clone(found)
	return s.err
}

func (s *source) Close() error { return nil }

func (s *source) wait(ctx context.Context) error {
	// No timer of 0: two goroutines of a bubble that receive from one at the same time
	// bring down the race detector (go.dev/issue/78156).
	if s.takes == 0 {
		return nil
	}
	left := ctx.Done()
	if s.deaf {
		left = nil
	}
	timer := time.NewTimer(s.takes)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-left:
		s.cause = context.Cause(ctx)
		return ctx.Err()
	}
}

const (
	ms    = time.Millisecond
	never = time.Hour
)

var errDown = errors.New("down")

// lookup is one Find and what became of it.
type lookup struct {
	answer patientapi.ClinicianAnswer
	err    error
	took   time.Duration
	log    string
	stats  Stats
}

// find looks up under a context that ends after leaves, if that is not 0, and
// waits for every goroutine.
func find(t *testing.T, db, cache *source, leaves time.Duration) (l lookup) {
	t.Helper()
	var log bytes.Buffer
	d := open(t, db, cache, &log)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if leaves > 0 {
		time.AfterFunc(leaves, cancel)
	}
	start := time.Now()
	l.answer, l.err = d.Find(ctx, cachetest.Query(1))
	l.took = time.Since(start)
	l.stats, l.log = d.Stats(), log.String()
	return l
}

func open(t *testing.T, db, cache *source, log *bytes.Buffer) *Directory {
	t.Helper()
	d, err := New(Config{Store: db, Cache: cache, CacheTimeout: 100 * ms, Logger: slog.New(slog.NewTextHandler(log, nil))})
	require.NoError(t, err)
	return d
}

func (l lookup) expect(t *testing.T, took time.Duration, partial []string, numbers ...int) {
	t.Helper()
	if l.err != nil || l.took != took || !slices.Equal(l.answer.Partial, partial) || !slices.Equal(l.answer.Clinicians, cachetest.Found(numbers...)) {
		t.Errorf("after %v: %v, partial %q, %v; want after %v: %v, partial %q", l.took, l.answer.Clinicians, l.answer.Partial, l.err, took, numbers, partial)
	}
	if l.answer.Clinicians == nil || l.answer.Partial == nil {
		t.Error("an empty list has to be one, for JSON")
	}
}

var partial = []string{Cache}

func TestBothAnswerAndAreMergedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &source{takes: 50 * ms, found: cachetest.Found(2, 5)}
		db.found[0].Specialty = "newer"
		cache := &source{takes: 50 * ms, found: cachetest.Found(1, 2, 9)}
		l := find(t, db, cache, 0)
		want := cachetest.Found(1, 2, 5, 9)
		want[1].Specialty = "newer"
		// 50 ms beside each other, and 50 ms to tell the cache.
		if l.err != nil || l.took != 100*ms || !slices.Equal(l.answer.Clinicians, want) || len(l.answer.Partial) != 0 {
			t.Errorf("%v after %v, partial %q, %v", l.answer.Clinicians, l.took, l.answer.Partial, l.err)
		}
		if !slices.Equal(cache.kept, db.found) {
			t.Errorf("the cache still says %v", cache.kept)
		}
		if l.stats != (Stats{Lookups: 1, Hits: 1}) {
			t.Errorf("%+v", l.stats)
		}
	})
}

func TestCacheIsToldOnlyWhatItDidNotSay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			db, cache []int
			told      int
		}{
			{[]int{1, 2}, nil, 1},
			{[]int{1, 2}, []int{1, 2}, 0},
			{nil, nil, 0}, // nobody is not worth a place
			{nil, []int{1}, 1},
			{[]int{1}, []int{1, 2}, 1},
		} {
			db, cache := &source{found: cachetest.Found(c.db...)}, &source{found: cachetest.Found(c.cache...)}
			find(t, db, cache, 0).expect(t, 0, nil, max2(c.db, c.cache)...)
			if cache.told != c.told || c.told > 0 && !slices.Equal(cache.kept, db.found) {
				t.Errorf("database %v, cache %v: told %d times", c.db, c.cache, cache.told)
			}
		}
	})
}

// max2 returns the longer list, which holds the shorter one here.
func max2(a, b []int) []int {
	if len(a) > len(b) {
		return a
	}
	return b
}

func TestFailedDatabaseIsToldAtOnceThoughTheCacheHangs(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			db, cache := &source{takes: 2 * ms, err: errDown}, &source{takes: never, deaf: deaf}
			l := find(t, db, cache, 0)
			if !errors.Is(l.err, errDown) || l.took != 2*ms {
				t.Errorf("%v after %v", l.err, l.took)
			}
			if l.log != "" || l.stats != (Stats{Lookups: 1}) {
				t.Errorf("blames the cache: %s%+v", l.log, l.stats)
			}
			synctest.Wait()
			if !deaf && !errors.Is(cache.cause, errDown) {
				t.Errorf("the cache was told %v", cache.cause)
			}
			time.Sleep(never)
		})
	}
}

func TestCacheThatFailsIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		cache source
		took  time.Duration
	}{
		"at once":   {source{err: errDown, found: cachetest.Found(9)}, 10 * ms},
		"later":     {source{err: errDown, takes: 30 * ms}, 30 * ms},
		"hangs":     {source{takes: never}, 100 * ms},
		"is deaf":   {source{takes: never, deaf: true}, 100 * ms},
		"panics":    {source{panic: "a bug"}, 10 * ms},
		"just late": {source{takes: 101 * ms, deaf: true, found: cachetest.Found(9)}, 100 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cache := c.cache
				l := find(t, &source{takes: 10 * ms, found: cachetest.Found(1, 2)}, &cache, 0)
				l.expect(t, c.took, partial, 1, 2)
				if cache.told > 0 {
					t.Error("a cache that fails was told something")
				}
				if strings.Count(l.log, "the clinician cache fails") != 1 || l.stats != (Stats{Lookups: 1, Failures: 1}) {
					t.Errorf("%s%+v", l.log, l.stats)
				}
				time.Sleep(never) // the late one returns now, and changes nothing
				synctest.Wait()
				l.expect(t, c.took, partial, 1, 2)
			})
		})
	}
}

func TestCacheThatCannotBeToldCostsNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache := &keepless{}
		d, err := New(Config{Store: &source{found: cachetest.Found(1)}, Cache: cache})
		require.NoError(t, err)
		start := time.Now()
		answer, err := d.Find(t.Context(), cachetest.Query(1))
		if err != nil || len(answer.Clinicians) != 1 || len(answer.Partial) != 0 || time.Since(start) != DefaultCacheTimeout {
			t.Errorf("%v, %v after %v", answer, err, time.Since(start))
		}
		if s := d.Stats(); s != (Stats{Lookups: 1, Misses: 1, Unkept: 1}) {
			t.Errorf("%+v", s)
		}
	})
}

// keepless is an empty cache that hangs when told something.
type keepless struct{ source }

func (*keepless) Keep(ctx context.Context, _ patientapi.ClinicianQuery, _ []patientapi.Clinician) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestCallerWhoLeavesWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, takes := range []struct{ db, cache time.Duration }{{never, never}, {never, 0}, {0, never}} {
			db, cache := &source{takes: takes.db, deaf: true}, &source{takes: takes.cache, deaf: true}
			l := find(t, db, cache, 5*ms)
			if !errors.Is(l.err, context.Canceled) || l.took != 5*ms || l.log != "" || l.stats.Failures > 0 || cache.told > 0 {
				t.Errorf("%+v: %v after %v, %s%+v", takes, l.err, l.took, l.log, l.stats)
			}
		}
		time.Sleep(never)
	})
}

func TestWithoutACacheNobodyIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, cache := &source{found: cachetest.Found(2, 1, 2)}, &source{found: cachetest.Found(9)}
		var log bytes.Buffer
		d := open(t, db, cache, &log)
		answer, err := d.FindInStore(t.Context(), cachetest.Query(1))
		lookup{answer: answer, err: err}.expect(t, 0, nil, 1, 2)
		if cache.asked+cache.told > 0 {
			t.Error("the cache was asked")
		}
		if d, err = New(Config{Store: db}); err != nil {
			t.Fatal(err)
		}
		answer, err = d.Find(t.Context(), cachetest.Query(1))
		lookup{answer: answer, err: err}.expect(t, 0, nil, 1, 2)
	})
}
