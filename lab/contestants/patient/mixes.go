package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/mixes"
	"github.com/spillway-go/spillway/lab/overload"
	"github.com/spillway-go/spillway/lab/service"
)

// summedOften is the sum over the rows of a range, so many times over: it takes as many
// times as long and no more memory.
const summedOften = `WITH RECURSIVE pass(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM pass WHERE n < $3)
SELECT 0, sum(value), count(*) FROM pass CROSS JOIN events WHERE id BETWEEN $1 AND $2`

// mixed is a service whose requests each ask its database once, behind a contestant.
func mixed(ctx context.Context, j mixes.Job, ready contestant.Ready) (*service.Served, error) {
	database, err := openSummed(ctx, j.Engine, j.URL, mixes.Events, summedOften)
	if err != nil {
		return nil, err
	}
	defer database.close()
	guard, err := mixesGuard(j.Contestant, j.Slots)
	if err != nil {
		return nil, err
	}
	defer guard.Close()
	web := &http.Server{Handler: fromHeaders(sumsBehind(guard, database.ask)), ReadHeaderTimeout: 10 * time.Second}
	return service.Serve(ctx, ready, web, func(s *service.Sample) {
		s.Limit, s.InFlight, s.Queued = guard.Limit(), guard.Running(), guard.Waiting()
	})
}

// sumsBehind answers a request for the sum of so many rows at a random place, so many times
// over.
func sumsBehind(guard *overload.Guard, ask func(ctx context.Context, args ...any) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rows, err1 := strconv.Atoi(r.FormValue("rows"))
		passes, err2 := strconv.Atoi(r.FormValue("passes"))
		if err := errors.Join(err1, err2); err != nil || rows < 1 || rows >= mixes.Events || passes < 1 {
			http.Error(w, fmt.Sprintf("want rows of 1 to %d, and passes of 1 or more", mixes.Events-1), http.StatusBadRequest)
			return
		}
		answerBehind(guard, w, r, func(ctx context.Context) error {
			from := 1 + rand.IntN(mixes.Events-rows)
			return ask(ctx, from, from+rows-1, passes)
		})
	})
}

// mixesGuard is the contestant of that name. The semaphore has so many slots.
func mixesGuard(name string, slots int) (*overload.Guard, error) {
	switch name {
	case mixes.None, mixes.Spillway:
		return overload.NewGuard(map[string]string{mixes.None: overload.None, mixes.Spillway: overload.Spillway}[name], 0)
	case mixes.Failsafe:
		return failsafe(), nil
	case mixes.Semaphore:
		return overload.SemaphoreFor(slots, mixes.Wait), nil
	}
	return nil, fmt.Errorf("no contestant %q", name)
}
