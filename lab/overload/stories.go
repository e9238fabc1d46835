package overload

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/fanout"
	"github.com/spillway-go/spillway/lab/burn"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/load/judge"
)

// Stories is experiment W: five ways in which a Go service goes down and stays down, each told by a
// plain service, and by the same one behind Spillway.
var Stories = experiment.Declare(warStories, storiesHelp, planOf(stories), Roles)

const storiesHelp = `Five war stories. In each a small HTTP service, in a process of its own, is told as a plain net/http service (unprotected) and behind Spillway with hardly any configuration (protected).

metastable: at half of its capacity the database becomes five times slower for ten seconds. The clients wait a second and try three times. Does the service come back by itself? The protected one has admissionhttp in front of it, and its clients have admissionhttp/client with a retry budget.

memory: requests hold 2 MiB each, and twice as many arrive as GOMEMLIMIT has room for. How much of the processor time goes to the garbage collector, and does the process live? The protected one has limiter.Memory.

herd: a service that lives from its cache is restarted, and 200 clients come back at once. How long does it take until 90 % of the requests are answered? Protected as in metastable.

query: one kind of query, a tenth of all, that took 100 ms takes 10 seconds. It shares ten connections with the others. How many goroutines pile up, and are the critical requests answered? The protected service gives it half of the connections, and has a limiter in front of the rest.

fanout: every request asks 20 sources, each of which sends half a megabyte. What is the peak of the memory? The protected service runs eight requests at a time, and uses fanout.Map with a bulkhead of 64 goroutines for all of them.

The scenes are metastable, memory, herd, query and fanout. Of them metastable, herd and query mostly wait, and are told at the same time. --quick --repeats 1 shows each of them once.`

// How a story is told.
const (
	unprotected = "unprotected" // a plain Go service
	protected   = "protected"   // the same behind Spillway
)

// The times of the stories, at the usual pace.
const (
	calm    = 3 * time.Second  // all is well
	trigger = 10 * time.Second // the database is slow
	after   = 30 * time.Second // that metastable goes on
	settled = 5 * time.Second  // after the trigger, when the protected service has to be back
	stuck   = 10 * time.Second // that the slow query takes
)

const (
	slower     = 5                      // times, that the database is in metastable
	backWithin = 100 * time.Millisecond // all clients come back in herd
	healthy    = 90                     // per cent of the requests answered

	memoryLimit  = 192 << 20 // GOMEMLIMIT
	documentSize = 2 << 20   // that a request holds
	documentHeld = 400 * time.Millisecond
	documentWork = 1500 * time.Microsecond // of processor time for it
	memoryBound  = .7                      // less than by default: of requests that hold megabytes many come between two collections

	reportTime = 100 * time.Millisecond // before it is slow
	queryShare = .35                    // of the capacity is what query sends
	soon       = time.Second            // a critical request is answered well within that

	sources        = 20 // that every request of fanout asks
	sourceTime     = 200 * time.Millisecond
	sourceSize     = 512 << 10 // that each sends
	sourcesAtOnce  = 64        // what the protected service is told
	requestsAtOnce = 8
)

// The paths of query: a tenth of the requests asks for a report, a fifth is critical.
const report, lookup, list = "/report", "/lookup", "/list"

// stories are the scenes of this experiment.
var stories = toldTwice(
	&scene{ // a short trouble that retries turn into a lasting one
		name: "metastable", times: .5, time: calm + trigger + after, handler: metastable, beside: waiting, crowded: .1, uses: .1,
		manners: func(t *trial) manners { return retrying(t, nil) },
		figures: func(t *trial) map[string]float64 {
			at := func(d time.Duration) time.Duration { return lasts(t.Pace, d) }
			over, end := at(calm+trigger), at(calm+trigger+after)
			return map[string]float64{
				beforeIt.Key:  t.crowd.share(at(calm/3), at(2*calm/3), request.good), // what is under way when the trouble begins is lost
				afterIt.Key:   t.crowd.share(over, end, request.good),
				settledIt.Key: t.crowd.share(over+at(settled), end, request.good),
			}
		},
	},
	&scene{ // requests that hold memory, and a collector that finds nothing to free
		name: "memory", load: "2x the memory", rate: 2 * memoryLimit / (documentSize * .4), time: 5 * time.Second, handler: documents,
		busy: always, manners: func(*trial) manners { return manners{patience: 2 * time.Second} },
		figures: func(t *trial) map[string]float64 {
			if t.run.Process.CPUSeconds == 0 { // not known, or killed
				return map[string]float64{}
			}
			return map[string]float64{"gc": 100 * t.run.Process.GCShare}
		},
		spec: func(s *contestant.Spec) {
			s.Env, s.MemoryCap = []string{fmt.Sprintf("GOMEMLIMIT=%d", memoryLimit)}, memoryLimit/4*5
		},
	},
	&scene{ // a restart with an empty cache, for which all clients wait
		name: "herd", times: 1.5, time: 10 * time.Second, handler: coldCache, beside: waiting, crowded: .1, uses: .1,
		before: []before{{times: clientCount / backWithin.Seconds() / usual.Capacity(), lasts: backWithin, steady: true}},
		manners: func(t *trial) manners {
			keys := uint64(4 * usual.Capacity()) // the database needs four seconds for them
			return retrying(t, func(n uint64) string { return fmt.Sprintf("/%d", n*7919%keys) })
		},
		figures: func(t *trial) map[string]float64 {
			at, ever := t.crowd.recovered(healthy, backWithin+lasts(t.Pace, 10*time.Second))
			return map[string]float64{recovery.Key: at.Seconds(), "never": map[bool]float64{false: 1}[ever]}
		},
	},
	&scene{ // one kind of query that becomes slow and takes the connections from the others
		name: "query", times: queryShare, time: calm + 2*stuck, handler: slowQuery, beside: waiting, crowded: .1, uses: .1,
		manners: func(t *trial) manners {
			return manners{patience: lasts(t.Pace, stuck), path: func(n uint64) string {
				switch {
				case n%10 == 0:
					return report
				case n%5 == 1:
					return lookup
				}
				return list
			}}
		},
		figures: func(t *trial) map[string]float64 {
			vital := t.crowd.of(func(r request) bool { return r.path == lookup })
			return map[string]float64{
				critical.Key: vital.share(lasts(t.Pace, calm), lasts(t.Pace, calm+2*stuck), func(r request) bool { return r.good() && r.ended-r.sent <= soon }),
				backlog.Key:  queryShare * usual.Capacity() * lasts(t.Pace, stuck).Seconds(),
				bound.Key:    float64(2 * (reportsAtOnce(usual.Slots) + othersAtOnce(usual.Slots))), // as many may wait as run
			}
		},
	},
	&scene{ // requests that each ask many others, and nothing that says how many at once
		name: "fanout", load: "400 a second", rate: 400, time: 5 * time.Second, handler: fansOut,
		busy: always, manners: func(*trial) manners { return manners{patience: 5 * time.Second} },
	},
)

// waiting are the stories that mostly wait, and are told at the same time.
const waiting = "stories that wait"

func toldTwice(all ...*scene) []*scene {
	for _, s := range all {
		s.setup, s.contestants = s.name, []string{unprotected, protected}
	}
	return all
}

func always(string) bool { return true }

// retrying are clients that wait a second and try three times. Those of a protected service have
// admissionhttp/client, and a budget that also pays for what they repeat themselves.
func retrying(t *trial, path func(n uint64) string) manners {
	return manners{path: path, patience: time.Second, tries: 3, aware: t.job.Contestant == protected}
}

// protect is the middleware, if the service is protected.
func (f *Front) protect(j Job, cfg limiter.Config, most int) (func(http.Handler) http.Handler, error) {
	if j.Contestant != protected {
		return func(h http.Handler) http.Handler { return h }, nil
	}
	return f.Admit(cfg, most, admissionhttp.Config{})
}

// beginning has begin called with the first request.
func beginning(next http.Handler, begin func()) http.Handler {
	once := sync.OnceFunc(begin)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		once()
		next.ServeHTTP(w, r)
	})
}

func metastable(_ context.Context, j Job, f *Front) (http.Handler, error) {
	store := service.NewDatabase(j.Work, j.Seed)
	admit, err := f.protect(j, limiter.Config{}, 0)
	if err != nil {
		return nil, err
	}
	ask := admit(Work(func(_ http.ResponseWriter, r *http.Request) error { return store.Ask(r.Context()) }))
	return beginning(ask, func() {
		time.AfterFunc(j.lasts(calm), func() { store.Slow(slower) })
		time.AfterFunc(j.lasts(calm+trigger), func() { store.Slow(1) })
	}), nil
}

func documents(_ context.Context, j Job, f *Front) (http.Handler, error) {
	admit, err := f.protect(j, limiter.Config{Signals: []limiter.Signal{limiter.Memory(memoryBound)}}, 0)
	if err != nil {
		return nil, err
	}
	work := burn.For(documentWork)
	return admit(Work(func(_ http.ResponseWriter, r *http.Request) error {
		document := touched(documentSize)
		work()
		err := service.Pause(r.Context(), documentHeld) // for another service, which is never slow
		runtime.KeepAlive(document)
		return err
	})), nil
}

// touched is so much memory that the system has really given.
func touched(size int) []byte {
	const page = 4 << 10
	b := make([]byte, size)
	for i := 0; i < len(b); i += page {
		b[i] = 1
	}
	return b
}

func coldCache(_ context.Context, j Job, f *Front) (http.Handler, error) {
	store := service.NewDatabase(j.Work, j.Seed)
	var cached sync.Map
	admit, err := f.protect(j, limiter.Config{}, 0)
	if err != nil {
		return nil, err
	}
	return admit(Work(func(_ http.ResponseWriter, r *http.Request) error {
		if _, hit := cached.Load(r.URL.Path); hit {
			return nil
		}
		err := store.Ask(r.Context())
		if err == nil {
			cached.Store(r.URL.Path, true)
		}
		return err
	})), nil
}

func slowQuery(_ context.Context, j Job, f *Front) (http.Handler, error) {
	pool := make(connections, j.Work.Slots)
	var slow atomic.Bool
	reports, err1 := f.protect(j, limiter.Config{Law: limit.NewFixed(reportsAtOnce(j.Work.Slots)), QueueSize: reportsAtOnce(j.Work.Slots)}, 0)
	others, err2 := f.protect(j, limiter.Config{QueueSize: othersAtOnce(j.Work.Slots)}, othersAtOnce(j.Work.Slots))
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	taking := func(d func() time.Duration) Work {
		return func(_ http.ResponseWriter, r *http.Request) error {
			return pool.query(r.Context(), d())
		}
	}
	quick := others(taking(func() time.Duration { return (j.Work.Min + j.Work.Max) / 2 }))
	mux := http.NewServeMux()
	mux.Handle(report, reports(taking(func() time.Duration {
		if slow.Load() {
			return j.lasts(stuck)
		}
		return reportTime
	})))
	mux.Handle(lookup, admissionhttp.WithPriority(spillway.Critical, quick))
	mux.Handle(list, quick)
	return beginning(mux, func() { time.AfterFunc(j.lasts(calm), func() { slow.Store(true) }) }), nil
}

// connections are those of a pool: so many queries at a time, the others wait.
type connections chan struct{}

func (c connections) query(ctx context.Context, takes time.Duration) error {
	select {
	case c <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c }()
	return service.Pause(ctx, takes)
}

// The protected service is told these: reports get half of the connections, and all others
// together are no more than twice as many as there are.
func reportsAtOnce(connections int) int { return max(1, connections/2) }
func othersAtOnce(connections int) int  { return 2 * connections }

func fansOut(_ context.Context, j Job, f *Front) (http.Handler, error) {
	admit, err := f.protect(j, limiter.Config{}, requestsAtOnce)
	if err != nil {
		return nil, err
	}
	bulkhead, err := fanout.NewBulkhead(sourcesAtOnce)
	if err != nil {
		return nil, err
	}
	return admit(Work(func(_ http.ResponseWriter, r *http.Request) error {
		if j.Contestant != protected {
			return askAll(r.Context())
		}
		_, err := fanout.Map(r.Context(), fanout.MapConfig{Bulkhead: bulkhead}, make([]struct{}, sources), askOne)
		return err
	})), nil
}

// askOne asks a source. Its answer is in memory until the end.
func askOne(ctx context.Context, _ struct{}) (int, error) {
	answer := touched(sourceSize)
	err := service.Pause(ctx, sourceTime)
	return len(answer) + int(answer[0]), err
}

// askAll asks every source on a goroutine of its own.
func askAll(ctx context.Context) error {
	errs := make([]error, sources)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { _, errs[i] = askOne(ctx, struct{}{}) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// The figures.
var (
	beforeIt  = ledger.Extra("before", "share of the requests answered well before the trigger")
	afterIt   = ledger.Extra("after", "share of the requests answered well after the trigger")
	settledIt = ledger.Extra("settled", "share of the requests answered well from five seconds after the trigger on")
	recovery  = ledger.Extra("recovery_s", "time until 90 % of the requests were answered well")
	bound     = ledger.Extra("bound", "bound of requests")
	backlog   = ledger.Extra("backlog", "requests that arrive while the slow query takes")
	collected = ledger.Figure{Name: "share of the processor time in the collector, or all of it if the process was killed,", OfKilled: true,
		Value: func(r *results.Run) float64 {
			gc, known := r.Extra["gc"]
			switch {
			case r.Killed != "":
				return 100
			case !known:
				return math.NaN()
			}
			return gc
		}}
)

func story(name string) *scene { return named(stories, name)[0] }

// lasting is the case of a contestant in metastable, which is open if that was too short.
func lasting(f ledger.Figure, contestants ...string) func(*ledger.Evidence) []ledger.Case {
	return func(e *ledger.Evidence) (out []ledger.Case) {
		for _, name := range contestants {
			k := story("metastable").key(name)
			c := ledger.Case{Setup: name, Value: ledger.Of(k, f)}
			if e.ParamOf(k, "pace") < 1 {
				c.Open = "The goal speaks of a trigger of ten seconds and of thirty seconds after it: run it without --quick and --pace."
			}
			out = append(out, c)
		}
		return out
	}
}

// recoveries says where the plain service was still down at the end.
func recoveries(e *ledger.Evidence) []ledger.Case {
	c := ledger.Case{Setup: "protected/unprotected", Value: story("herd").of(protected, recovery).Over(story("herd").of(unprotected, recovery))}
	runs, never := e.Runs(story("herd").key(unprotected)), 0
	for _, r := range runs {
		if r.Extra["never"] == 1 {
			never++
		}
	}
	if never > 0 {
		c.Remark = fmt.Sprintf("Unprotected did not recover in %d of %d repeats, for which the whole time that it was watched counts.", never, len(runs))
	}
	return []ledger.Case{c}
}

var warStories = ledger.Family{
	ID:    "W",
	Title: "Five ways in which a Go service goes down and stays down, each with and without protection",
	Claims: []ledger.Claim{
		{ID: "story-1", Goal: true, Title: "after ten seconds with a slow database a plain service stays down for half a minute, and a protected one is back in five seconds", Parts: []ledger.Part{
			{ID: "before", Title: "both answer at least 95 % of the requests until the database slows down", Subject: "share of the requests answered well before the trigger",
				Unit: "%", Kind: judge.Every, Rule: judge.AtLeast(95), Spread: .5, Max: 100, Cases: lasting(beforeIt, unprotected, protected)},
			{ID: "unprotected", Title: "the plain service answers less than a fifth of the requests in the thirty seconds after the database has recovered", Subject: "share of the requests answered well after the trigger",
				Unit: "%", Kind: judge.Every, Rule: judge.Below(20), Spread: .5, Max: 100, Cases: lasting(afterIt, unprotected)},
			{ID: "protected", Title: "the protected service answers over 95 % of the requests from five seconds after the database has recovered", Subject: "share of the requests answered well from five seconds after the trigger on",
				Unit: "%", Kind: judge.Every, Rule: judge.Above(95), Spread: .5, Max: 100, Cases: lasting(settledIt, protected)},
		}},
		{ID: "story-2", Goal: true, Title: "twice the requests that fit into GOMEMLIMIT bury a plain service in garbage collection, and not a protected one", Parts: []ledger.Part{
			{ID: "unprotected", Title: "the plain service spends over 30 % of its processor time in the collector, or is killed", Subject: "share of the processor time in the collector, without protection",
				Unit: "%", Kind: judge.Every, Rule: judge.Above(30), Spread: .5, Max: 100, Cases: ledger.One(unprotected, story("memory").of(unprotected, collected))},
			{ID: "protected", Title: "the protected service lives and spends less than 10 % of its processor time in the collector", Subject: "share of the processor time in the collector, with protection",
				Unit: "%", Kind: judge.Every, Rule: judge.Below(10), Spread: .5, Max: 100, Cases: ledger.One(protected, story("memory").of(protected, collected))},
		}},
		{ID: "story-3", Goal: true, Title: "after a restart with an empty cache a protected service answers 90 % of the requests in at most half the time of a plain one", Parts: []ledger.Part{
			{Subject: "time until 90 % of the requests are answered, protected/unprotected", Unit: "x", Kind: judge.Every, Rule: judge.AtMost(.5), Cases: recoveries},
		}},
		{ID: "story-4", Goal: true, Title: "a query that becomes a hundred times slower fills a plain service with goroutines, and a protected one stays within its bound and answers its critical requests",
			Note: "net/http has two goroutines for a request that is being answered. The bound is of the requests that the limiters of the protected service let run and wait.",
			Parts: []ledger.Part{
				{ID: "unprotected", Title: "the plain service has at least as many goroutines as requests arrive while the slow query takes", Subject: "peak of the goroutines without protection/requests that arrive",
					Unit: "x", Kind: judge.Every, Rule: judge.AtLeast(1), Cases: ledger.One(unprotected, story("query").of(unprotected, ledger.Goroutines).Over(story("query").of(unprotected, backlog)))},
				{ID: "protected", Title: "the protected service has at most twice as many goroutines as its bound", Subject: "peak of the goroutines with protection/bound",
					Unit: "x", Kind: judge.Every, Rule: judge.AtMost(2), Cases: ledger.One(protected, story("query").of(protected, ledger.Goroutines).Over(story("query").of(protected, bound)))},
				{ID: "critical", Title: "the protected service answers at least 99 % of the critical requests within a second", Subject: "share of the critical requests answered well while the query is slow",
					Unit: "%", Kind: judge.Every, Rule: judge.AtLeast(99), Spread: .3, Max: 100, Cases: ledger.One(protected, story("query").of(protected, critical))},
			}},
		{ID: "story-5", Goal: true, Title: "a bounded fan-out needs at most a tenth of the memory of one without a bound", Parts: []ledger.Part{
			{Subject: "peak RSS protected/unprotected", Unit: "x", Kind: judge.Every, Rule: judge.AtMost(.1),
				Cases: ledger.One("protected/unprotected", story("fanout").of(protected, ledger.PeakRSS).Over(story("fanout").of(unprotected, ledger.PeakRSS)))},
		}},
	},
	Columns: []ledger.Column{
		{Key: "before", Name: "answered before the trigger, %", Format: "decimals"}, {Key: "after", Name: "after it, %", Format: "decimals"}, {Key: "settled", Name: "from 5 s after it, %", Format: "decimals"},
		{Key: "gc", Name: "processor time in the collector, %", Format: "decimals"},
		{Key: "recovery_s", Name: "until 90 % are answered, s", Format: "decimals"}, {Key: "never", Name: "still down at the end"},
		{Key: "critical", Name: "critical requests answered, %", Format: "decimals"}, {Key: "bound", Name: "bound of requests"}, {Key: "backlog", Name: "requests while the query takes"},
	},
	Method: []ledger.Note{
		{Title: "Plain and protected", Text: "The plain service is net/http and a handler that heeds its request's context, as good handlers do: when a client leaves, its query is cancelled. The protected one is the same handler behind admissionhttp with limiter.Config{}; in memory with the signal limiter.Memory at 0.7 of the limit, in query with two limiters that have a bound, in fanout with fanout.Map. Loads are open loops with Poisson arrivals of 200 clients, whatever becomes of their requests. Each repeat is judged on its own."},
		{Title: "metastable", Text: "A database with a knee: ten queries at a time run at full speed, 20 to 60 ms each, and with c of them the total falls to √(10/c). Half of its capacity is asked of it. For ten seconds everything takes it five times as long. Clients wait a second for an answer and try three times, with a random pause of up to 100 and 200 ms; in front of the protected service they have admissionhttp/client, and its budget pays for every repetition. A request counts when it was sent, and as answered if one of its tries was."},
		{Title: "memory", Text: "GOMEMLIMIT is 192 MiB, and a process is killed at a quarter more, as in a container that has little above it. A request holds 2 MiB while it computes for 1.5 ms and waits 400 ms for another service, which is never slow; as many come as would hold twice the limit. The collector's share is the runtime's own figure, of all processor time that was not idle. A process that was killed has spent all of it."},
		{Title: "herd", Text: "The database is that of metastable; the service asks it only for what is not in its cache, which is empty. 200 requests come within a tenth of a second, then 1.5 times what the database can do, by the same clients, for as many keys as it answers in four seconds. Recovered is the first tenth of a second from which on 90 % of the requests of a second are answered. A service that has not recovered at the end counts with the whole time, which favours it."},
		{Title: "query", Text: "Ten connections, for which queries wait. Every tenth request is a report, which takes 100 ms and then ten seconds; every fifth is a lookup, which is critical and has to be answered within a second; the rest are lists. All wait for as long as the slow query takes. The protected service lets half as many reports run as there are connections, and twice as many of all others as a bound of the adaptive limit; as many may wait."},
		{Title: "fanout", Text: "A request asks 20 sources. Each sends 512 KiB, which stay in memory for 200 ms. The plain service asks each on a goroutine of its own. The protected one lets at most eight requests run at once, and uses fanout.Map with a bulkhead of 64 goroutines for all of them. 400 requests a second need far more than the memory cap, at which the plain service is killed; its peak is what it had then."},
		{Title: "Side by side", Text: "metastable, herd and query mostly wait, and are told at the same time, each service in a process of its own. A run of them whose clients sent late (p99 above 50 ms) is made again, at most twice; if they are still late, it does not count."},
	},
}
