// Package directory finds clinicians in the database and in a cache at once.
//
// The database is required, the cache is not: when the database fails, so does
// the lookup, at once; when the cache fails or is late, the answer names it as
// missing. Whom both know is as the database says. A cache that said otherwise
// than the database is told so before the lookup returns: somebody who is gone
// from the database is gone from later lookups too.
package directory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/discreet"
	"github.com/spillway-go/spillway/fanout"
)

// The sources, as ClinicianAnswer.Partial names them.
const (
	Database = "database"
	Cache    = "cache"
)

// DefaultCacheTimeout is how long a lookup waits for the cache unless said
// otherwise.
const DefaultCacheTimeout = 100 * time.Millisecond

// ClinicianStore knows all clinicians. It is safe for concurrent use. Its errors are
// logged, so they say nothing about the people asked for.
type ClinicianStore interface {
	// Clinicians returns those that the question asks for, by id; finding none is not
	// an error. The slice is the caller's.
	Clinicians(ctx context.Context, q patientapi.ClinicianQuery) ([]patientapi.Clinician, error)
}

// ClinicianCache remembers for a while what a store answered. It is safe for
// concurrent use. It holds people's data, so it forgets by itself what it keeps. Its
// errors are logged, so they say nothing about the people asked for.
type ClinicianCache interface {
	// Clinicians returns what was kept for the question; nothing, if nothing was. The
	// slice is the caller's.
	Clinicians(ctx context.Context, q patientapi.ClinicianQuery) ([]patientapi.Clinician, error)

	// Keep replaces what is kept for the question. It holds nothing of found when it
	// has returned.
	Keep(ctx context.Context, q patientapi.ClinicianQuery, found []patientapi.Clinician) error
}

// Config says where a Directory looks.
type Config struct {
	Store ClinicianStore

	// Cache is what remembers answers of the store. Nil means that nothing does.
	Cache ClinicianCache

	// CacheTimeout bounds each use of the cache: the question, and after a miss
	// the telling. Zero means DefaultCacheTimeout.
	CacheTimeout time.Duration

	// Logger is told that the cache fails, in at most one line a second and
	// without anybody's data. Nil means nobody is.
	Logger *slog.Logger
}

// Directory finds clinicians. It is safe for concurrent use, and starts nothing
// that outlives a lookup but a question to the cache that ignores its context.
type Directory struct {
	cfg  Config
	both *fanout.Fanout[patientapi.ClinicianQuery, known] // nil without a cache

	lookups, hits, misses, failures, unkept atomic.Uint64

	failing, panics *discreet.Log // the cache; a source that nobody waited for
}

// New returns a Directory. The error says which setting is wrong.
func New(cfg Config) (*Directory, error) {
	switch {
	case cfg.Store == nil:
		return nil, errors.New("directory: no store")
	case cfg.CacheTimeout < 0:
		return nil, fmt.Errorf("cache-timeout is %v: it cannot be negative (0 means %v)", cfg.CacheTimeout, DefaultCacheTimeout)
	case cfg.CacheTimeout == 0:
		cfg.CacheTimeout = DefaultCacheTimeout
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	d := &Directory{
		cfg:     cfg,
		failing: discreet.NewLog(cfg.Logger, slog.LevelWarn, "the clinician cache fails", "failures"),
		panics:  discreet.NewLog(cfg.Logger, slog.LevelError, "a late source of clinicians panicked", "panics"),
	}
	if cfg.Cache == nil {
		return d, nil
	}
	var err error
	d.both, err = fanout.New(
		// Beside each other always: what one after the other would save beside a
		// query is not worth a cache that hangs adding its time to the database's,
		// or, when it ignores its context, holding the caller for longer.
		fanout.Config{Mode: fanout.Parallel, OnLate: d.late},
		fanout.Required(Database, cfg.Store.Clinicians, (*known).inStore),
		fanout.Optional(Cache, cfg.Cache.Clinicians, (*known).inCache).Within(cfg.CacheTimeout),
	)
	return d, err
}

// Alone returns a Directory over a store without a cache.
func Alone(store ClinicianStore) *Directory { return &Directory{cfg: Config{Store: store}} }

// late logs a source that panicked when nobody waited for it any more. Whatever
// else became of it is no news.
func (d *Directory) late(err *fanout.BranchError) {
	if _, panicked := errors.AsType[*spillway.PanicError](err); panicked {
		d.panics.Add(time.Now(), "error", discreet.Text(err.Error()))
	}
}

// Find returns whom the store and the cache know. Errors: those of
// the store and ctx.Err(); failures of the cache are in the answer.
func (d *Directory) Find(ctx context.Context, q patientapi.ClinicianQuery) (patientapi.ClinicianAnswer, error) {
	if d.cfg.Cache == nil {
		return d.FindInStore(ctx, q)
	}
	d.lookups.Add(1)
	got, err := d.both.Do(ctx, q)
	if err != nil {
		return patientapi.ClinicianAnswer{}, err
	}
	known := got.Value
	answer := patientapi.ClinicianAnswer{Clinicians: patientapi.MergeClinicians(known.found, known.cached), Partial: []string{}}
	switch {
	case got.Missing != nil:
		for _, m := range got.Missing {
			answer.Partial = append(answer.Partial, m.Branch)
		}
		d.failures.Add(1)
		d.complain(&got.Missing[0])
		return answer, nil
	case len(known.cached) > 0:
		d.hits.Add(1)
	default:
		d.misses.Add(1)
	}
	if !slices.Equal(known.found, known.cached) {
		d.keep(ctx, q, known.found)
	}
	return answer, nil
}

// FindInStore returns whom the store knows and leaves the cache alone.
func (d *Directory) FindInStore(ctx context.Context, q patientapi.ClinicianQuery) (patientapi.ClinicianAnswer, error) {
	d.lookups.Add(1)
	found, err := d.cfg.Store.Clinicians(ctx, q)
	if err != nil {
		return patientapi.ClinicianAnswer{}, err
	}
	return patientapi.ClinicianAnswer{Clinicians: patientapi.MergeClinicians(found, nil), Partial: []string{}}, nil
}

// known is what the sources answered.
type known struct{ found, cached []patientapi.Clinician }

func (k *known) inStore(found []patientapi.Clinician)  { k.found = found }
func (k *known) inCache(cached []patientapi.Clinician) { k.cached = cached }

// keep tells the cache what the store answered. It waits, but not long: a
// goroutine that nobody waits for would outlive its request.
func (d *Directory) keep(ctx context.Context, q patientapi.ClinicianQuery, found []patientapi.Clinician) {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.CacheTimeout)
	defer cancel()
	if err := d.cfg.Cache.Keep(ctx, q, found); err != nil {
		d.unkept.Add(1)
		d.complain(err)
	}
}

// complain logs a failure of the cache.
func (d *Directory) complain(err error) {
	d.failing.Add(time.Now(), "error", discreet.Text(err.Error()))
}

// Stats counts lookups. Once none is under way, those that asked the cache and
// did not fail are hits, misses or failures.
type Stats struct {
	Lookups  uint64 `json:"lookups"`
	Hits     uint64 `json:"cache_hits"`
	Misses   uint64 `json:"cache_misses"`
	Failures uint64 `json:"cache_failures"` // partial answers
	Unkept   uint64 `json:"cache_unkept"`   // the answer was whole, the cache could not be told
}

// Stats returns the counts so far.
func (d *Directory) Stats() Stats {
	return Stats{
		Lookups: d.lookups.Load(), Hits: d.hits.Load(), Misses: d.misses.Load(),
		Failures: d.failures.Load(), Unkept: d.unkept.Load(),
	}
}
