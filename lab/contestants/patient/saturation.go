package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/overload"
	"github.com/spillway-go/spillway/lab/saturation"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/limiter"
)

// saturated is a service whose requests each use one scarce resource, behind a contestant.
func saturated(ctx context.Context, j saturation.Job, ready contestant.Ready) (*service.Served, error) {
	if j.Processors > 0 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(j.Processors))
	}
	work, done, err := scarcity(ctx, j)
	if err != nil {
		return nil, err
	}
	defer done()
	guard, err := saturationGuard(j.Contestant, j.Slots)
	if err != nil {
		return nil, err
	}
	defer guard.Close()
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answerBehind(guard, w, r, work) })
	web := &http.Server{Handler: fromHeaders(handler), ReadHeaderTimeout: 10 * time.Second}
	return service.Serve(ctx, ready, web, func(s *service.Sample) {
		s.Limit, s.InFlight, s.Queued = guard.Limit(), guard.Running(), guard.Waiting()
	})
}

// answerBehind answers a request by work, if the contestant admits the request.
func answerBehind(guard *overload.Guard, w http.ResponseWriter, r *http.Request, work func(context.Context) error) {
	ctx := r.Context()
	err := guard.Do(ctx, func(ctx context.Context) error {
		err := work(ctx)
		if err != nil && ctx.Err() != nil { // the driver says only that it was interrupted
			return ctx.Err()
		}
		return err
	})
	switch {
	case err == nil:
		_, _ = io.WriteString(w, "done\n")
	case errors.Is(err, spillway.ErrRejected):
		http.Error(w, "refused", http.StatusServiceUnavailable)
	case ctx.Err() != nil:
		http.Error(w, "too late", http.StatusGatewayTimeout)
	default:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// saturationGuard is the contestant of that name. Each stands at the front of its process.
func saturationGuard(name string, slots int) (*overload.Guard, error) {
	switch name {
	case saturation.None, saturation.SemaphoreTry:
		return overload.NewGuard(name, slots)
	case saturation.Failsafe:
		return failsafe(), nil
	case saturation.Spillway:
		lim, err := limiter.New(limiter.Config{})
		if err != nil {
			return nil, err
		}
		lim.Front()
		return &overload.Guard{Admit: lim.Do, Limit: lim.Limit, Close: lim.Close}, nil
	}
	return nil, fmt.Errorf("no contestant %q", name)
}

// scarcity returns the work of one request.
func scarcity(ctx context.Context, j saturation.Job) (work func(context.Context) error, done func(), err error) {
	done = func() {}
	switch j.Resource {
	case saturation.Processor:
		ms := roundsAMillisecond()
		return func(context.Context) error { burn(4 * ms); return nil }, done, nil
	case saturation.Around:
		ms := roundsAMillisecond()
		return func(ctx context.Context) error {
			burn(ms / 2)
			if err := service.Pause(ctx, 20*time.Millisecond); err != nil {
				return err
			}
			burn(ms / 2)
			return nil
		}, done, nil
	case saturation.Collector:
		return func(context.Context) error { return json.NewEncoder(io.Discard).Encode(garbage(40_000)) }, done, nil
	case saturation.Sort, saturation.HotRows:
		config, err := pgxpool.ParseConfig(j.URL)
		if err != nil {
			return nil, nil, errors.New("the database's address is no URL")
		}
		config.MaxConns = 60
		pool, err := pgxpool.NewWithConfig(ctx, config)
		if err != nil {
			return nil, nil, err
		}
		if j.Resource == saturation.Sort {
			return sorted(pool), pool.Close, nil
		}
		return hotRow(pool), pool.Close, nil
	}
	return nil, nil, fmt.Errorf("no resource %q", j.Resource)
}

// sorted has PostgreSQL sort some rows.
func sorted(pool *pgxpool.Pool) func(context.Context) error {
	const all, best = 5_000, 2_500
	return func(ctx context.Context) error {
		var sum any
		from := 1 + rand.IntN(saturation.Events-all)
		return pool.QueryRow(ctx, "SELECT sum(value) FROM (SELECT value FROM events WHERE id BETWEEN $1 AND $2 ORDER BY value, id LIMIT $3) AS first", from, from+all-1, best).Scan(&sum)
	}
}

// hotRow updates one of three rows and holds its lock for 3 ms.
func hotRow(pool *pgxpool.Pool) func(context.Context) error {
	return func(ctx context.Context) (err error) {
		tx, err := pool.Begin(ctx)
		if err != nil {
			return err
		}
		defer func() {
			if err != nil {
				_ = tx.Rollback(context.WithoutCancel(ctx))
			}
		}()
		if _, err = tx.Exec(ctx, "UPDATE events SET value = value + 1 WHERE id = $1", 1+rand.IntN(3)); err != nil {
			return err
		}
		if _, err = tx.Exec(ctx, "SELECT pg_sleep(0.003)"); err != nil {
			return err
		}
		return tx.Commit(ctx)
	}
}

// burn computes for so many rounds.
func burn(rounds int) byte {
	var block [1024]byte
	for range rounds {
		sum := sha256.Sum256(block[:])
		block[0] = sum[0]
	}
	return block[0]
}

// roundsAMillisecond is how many rounds of burn take a millisecond: by the fastest of some tries.
func roundsAMillisecond() int {
	const rounds = 2000
	fastest := time.Hour
	for range 6 {
		began := time.Now()
		burn(rounds)
		fastest = min(fastest, time.Since(began))
	}
	return max(int(rounds*float64(time.Millisecond)/float64(fastest)), 2)
}

// garbage allocates a list of n structs and returns a sum over it.
func garbage(n int) (sum int) {
	type node struct {
		next   *node
		values [6]int
	}
	var list *node
	for i := range n {
		list = &node{list, [6]int{i}}
	}
	for ; list != nil; list = list.next {
		sum += list.values[0]
	}
	return sum
}
