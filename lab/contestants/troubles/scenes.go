package main

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/lab/burn"
	"github.com/spillway-go/spillway/limiter"
)

// scene is a calm time and then a trouble.
type scene struct {
	name  string
	alone bool     // it fills the processors
	env   []string // of the service's process

	more  float64 // how many times as many requests arrive in the trouble
	slow  int     // slow clients of either sort
	limit limiter.Config

	ignoring bool // handlers ignore their deadlines

	// begin begins the trouble, and ends with ctx. It may be nil.
	begin func(ctx context.Context, s *service) error
	// around is the trouble of one request, instead of its work or before it. It may be nil.
	around func(s *service, w http.ResponseWriter, r *http.Request, work http.HandlerFunc)
}

var scenes = []scene{
	{name: "calm"},
	{name: "stall", begin: lockAll},
	{name: "stall-ignoring", begin: lockAll, ignoring: true},
	{name: "bad-deploy", around: fails(1)},
	{name: "bad-deploy-5", around: fails(.05)},
	{name: "leak", limit: limiter.Config{LeakAfter: 20 * time.Second}, around: leaks},
	{name: "leak-unwatched", around: leaks},
	{name: "slow-clients", slow: 60},
	{name: "slow-route", around: slowRoute},
	{name: "dryrun", alone: true, more: 6, limit: limiter.Config{Mode: limiter.DryRun}},
	{name: "overload", alone: true, more: 6},
	{name: "gc", alone: true, env: []string{"GOMEMLIMIT=96MiB"}, begin: fillMemory, around: garbage},
	{name: "processors", alone: true, env: []string{"GOMAXPROCS=1"}, around: computes},
}

// lockAll locks the whole database, as a migration does.
func lockAll(ctx context.Context, s *service) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	if _, err := conn.ExecContext(ctx, "pragma busy_timeout(60000); begin exclusive"); err != nil {
		return err
	}
	<-ctx.Done()
	return conn.Close()
}

// fails fails a share of the requests.
func fails(share float64) func(*service, http.ResponseWriter, *http.Request, http.HandlerFunc) {
	return func(_ *service, w http.ResponseWriter, r *http.Request, work http.HandlerFunc) {
		if rand.Float64() < share {
			http.Error(w, "a bug", http.StatusInternalServerError)
			return
		}
		work(w, r)
	}
}

// leaks keeps the slot of one in two hundred requests for work that never ends.
func leaks(_ *service, w http.ResponseWriter, r *http.Request, work http.HandlerFunc) {
	if rand.IntN(200) == 0 {
		_ = admissionhttp.Hold(r.Context()) // which nobody releases
	}
	work(w, r)
}

// slowRoute waits for another service, on one of ten routes.
func slowRoute(_ *service, w http.ResponseWriter, r *http.Request, work http.HandlerFunc) {
	if r.Pattern == slowest {
		select {
		case <-time.After(time.Duration(700+rand.IntN(200)) * time.Millisecond):
		case <-r.Context().Done():
		}
	}
	work(w, r)
}

// node is a piece of memory that the collector has to look at.
type node struct {
	next *node
	_    [56]byte
}

func list(bytes int) (first *node) {
	for range bytes / 64 {
		first = &node{next: first}
	}
	return first
}

// fillMemory keeps nine tenths of the memory limit, in ten seconds, as a cache that forgets nothing does.
func fillMemory(ctx context.Context, _ *service) error {
	const steps = 100
	var kept [steps]*node
	most := debug.SetMemoryLimit(-1)
	for i := range kept {
		select {
		case <-time.After(10 * time.Second / steps):
		case <-ctx.Done():
			return nil
		}
		kept[i] = list(int(most) * 9 / 10 / steps)
	}
	<-ctx.Done()
	runtime.KeepAlive(&kept)
	return nil
}

// latest keeps the compiler from dropping garbage.
var latest atomic.Pointer[node]

// garbage allocates half a megabyte for a request.
func garbage(_ *service, w http.ResponseWriter, r *http.Request, work http.HandlerFunc) {
	latest.Store(list(512 << 10))
	work(w, r)
}

var eightMilliseconds = sync.OnceValue(func() func() { return burn.For(8 * time.Millisecond) })

// computes needs 1.6 processors, and the service has one. A handler that only computes runs to its end before the next request is read.
func computes(_ *service, w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) {
	eightMilliseconds()()
	_, _ = io.WriteString(w, "computed\n")
}
