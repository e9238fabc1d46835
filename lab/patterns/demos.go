package patterns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/patterns/specimen"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/load/usage"
	"github.com/spillway-go/spillway/loadgen"
	"github.com/spillway-go/spillway/objectpool"
	"github.com/spillway-go/spillway/workerpool"
)

// demonstrations run faulty code, and beside it ours: the same over Spillway's packages.
var demonstrations = experiment.Staged{Role: "patterns-demo-", Acts: []experiment.Act{
	{ID: "early-return", Title: "the handler that returns before its goroutine writes", Run: earlyReturn},
	{ID: "shared-reply", Title: "the pooled response that is given back before it is encoded", Run: sharedReply},
	{ID: "late-retry-after", Title: "Retry-After set after the body", Run: lateRetryAfter},
}}

// underRace replaces demonstrations of data races in programs built with the race
// detector, which would end them at the race that they show.
var underRace = results.Demo{Outcome: "Not shown: this program was built with the race detector, and the fault is a data race."}

func earlyReturn(ctx context.Context) (results.Demo, error) {
	if usage.Race {
		return underRace, nil
	}
	const requests = 1000
	store := &specimen.Simulated{MinLatency: 2 * time.Millisecond, MaxLatency: 10 * time.Millisecond}
	theirs, err1 := ask(ctx, specimen.EarlyReturn{Store: store}, requests)
	ours, err2 := ask(ctx, patiently(store), requests)
	return results.Demo{
		Outcome: fmt.Sprintf("As printed, %d of %d requests got an empty 200; from a handler that waits for its goroutine %d of %d did.", theirs.empty.Load(), requests, ours.empty.Load(), requests),
		Counts:  []results.NamedCount{{Name: "requests to each", N: requests}, named("empty 200, as printed", &theirs.empty), named("empty 200, ours", &ours.empty)},
	}, errors.Join(err1, err2)
}

// sharedReply is a function call with the encoding of a handler, a millisecond after
// the reply: the time of an audit line or a contended lock.
func sharedReply(ctx context.Context) (results.Demo, error) {
	if usage.Race {
		return underRace, nil
	}
	const requests, clients, workers = 50_000, 200, 20
	var store specimen.Simulated
	demo := results.Demo{Counts: []results.NamedCount{{Name: "requests to each", N: requests}}}
	var said []string
	count := func(name string, answer func(id string, first func()) ([]byte, error)) error {
		var empty, other atomic.Int64
		_, err := loadgen.Run(ctx, loadgen.Config{
			Closed: &loadgen.Closed{Clients: clients, Requests: requests},
			Target: loadgen.TargetFunc(func(_ context.Context, n uint64) loadgen.Outcome {
				body, err := answer(asked.ID(n), func() { time.Sleep(time.Millisecond) })
				var reply specimen.Reply
				found := json.Unmarshal(body, &reply) == nil && reply.Patient != nil
				switch {
				case found && reply.Patient.ID != asked.ID(n):
					other.Add(1)
				case !found && err == nil:
					empty.Add(1)
				}
				return loadgen.FromError(err)
			}),
		})
		said = append(said, fmt.Sprintf("%s %d are empty and %d carry another patient", name, empty.Load(), other.Load()))
		demo.Counts = append(demo.Counts, named("empty, "+name, &empty), named("another patient, "+name, &other))
		return errors.Join(err, ctx.Err())
	}
	for _, s := range [][2]string{{specimen.SharedOnPut, "as printed"}, {specimen.SharedOnGet, "cleared on Get only"}} {
		service, err := specimen.New(s[0], &store, specimen.Config{Workers: workers, Queue: clients, Wait: time.Minute})
		if err != nil {
			return demo, err
		}
		defer service.Close()
		if err := count(s[1], service.Answer); err != nil {
			return demo, err
		}
	}
	pool, err := workerpool.New(workerpool.Config{MaxWorkers: workers, QueueSize: clients})
	if err != nil {
		return demo, err
	}
	err = count("ours", ownedReplies(ctx, pool, &store))
	demo.Outcome = fmt.Sprintf("Of %d replies %s.", requests, strings.Join(said, "; "))
	return demo, errors.Join(err, pool.Drain(ctx))
}

func lateRetryAfter(ctx context.Context) (results.Demo, error) {
	one, err := limiter.New(limiter.Config{Law: limit.NewFixed(1), QueueSize: -1})
	if err != nil {
		return results.Demo{}, err
	}
	protect, err := admissionhttp.New(admissionhttp.Config{Limiter: one})
	if err != nil {
		return results.Demo{}, err
	}
	store := &specimen.Simulated{MinLatency: 20 * time.Millisecond, MaxLatency: 20 * time.Millisecond}
	theirs, err1 := ask(ctx, http.HandlerFunc(specimen.LateRetryAfter), 500)
	ours, err2 := ask(ctx, protect(patiently(store)), 500)
	return results.Demo{
		Outcome: fmt.Sprintf("As printed, %d of %d refusals came without Retry-After; of ours %d of %d did.", theirs.untold.Load(), theirs.refused.Load(), ours.untold.Load(), ours.refused.Load()),
		Counts: []results.NamedCount{
			named("refused, as printed", &theirs.refused), named("without Retry-After, as printed", &theirs.untold),
			named("refused, ours", &ours.refused), named("without Retry-After, ours", &ours.untold),
		},
	}, errors.Join(err1, err2)
}

func named(name string, n *atomic.Int64) results.NamedCount {
	return results.NamedCount{Name: name, N: float64(n.Load())}
}

// patiently answers each request in a goroutine as EarlyReturn does, and waits for it.
func patiently(store *specimen.Simulated) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answer := make(chan specimen.Reply, 1)
		go func() {
			patient, err := store.Patient(r.PathValue("id"))
			answer <- specimen.Reply{Success: err == nil, Patient: patient}
		}()
		_ = json.NewEncoder(w).Encode(<-answer) // fails for a client that has left
	}
}

// ownedReplies gives each pooled reply one owner at a time: the worker until it returns
// it, then the receiver until it has encoded it.
func ownedReplies(ctx context.Context, pool *workerpool.Pool, store *specimen.Simulated) func(string, func()) ([]byte, error) {
	replies := objectpool.New(objectpool.Config[specimen.Reply]{Clear: func(r *specimen.Reply) { *r = specimen.Reply{} }})
	return func(id string, first func()) ([]byte, error) {
		reply, err := workerpool.Do(ctx, pool, func(context.Context) (*specimen.Reply, error) {
			reply := replies.Get()
			patient, err := store.Patient(id)
			*reply = specimen.Reply{Success: err == nil, Patient: patient}
			return reply, nil
		})
		if err != nil {
			return nil, err
		}
		defer replies.Put(reply)
		first()
		return json.Marshal(reply)
	}
}

// asked is whom the demonstrations ask for.
var asked = Job{Config: Config{Patients: 10_000}}

// asks counts what became of requests.
type asks struct {
	empty   atomic.Int64 // good answers with nothing in them
	refused atomic.Int64
	untold  atomic.Int64 // refusals without Retry-After
}

// ask serves h on loopback and sends it requests for different patients from fifty clients.
func ask(ctx context.Context, h http.Handler, requests uint64) (seen *asks, err error) {
	seen = new(asks)
	mux := http.NewServeMux()
	mux.Handle("GET /api/v1/patients/{id}", h)
	web := httptest.NewServer(mux)
	defer web.Close()
	target, err := loadgen.NewHTTP(loadgen.HTTPConfig{
		Timeout: 10 * time.Second, URLFor: func(n uint64) string { return web.URL + "/api/v1/patients/" + asked.ID(n) },
		Check: func(_ uint64, _ int, body []byte) error {
			if len(body) == 0 {
				seen.empty.Add(1)
			}
			return nil
		},
	})
	if err != nil {
		return seen, err
	}
	defer target.Close()
	_, err = loadgen.Run(ctx, loadgen.Config{
		Closed: &loadgen.Closed{Clients: 50, Requests: requests},
		Target: loadgen.TargetFunc(func(ctx context.Context, n uint64) loadgen.Outcome {
			outcome, after := target.Ask(ctx, n)
			if outcome == loadgen.Rejected {
				seen.refused.Add(1)
				if after == 0 {
					seen.untold.Add(1)
				}
			}
			return outcome
		}),
	})
	return seen, errors.Join(err, target.FirstError(), ctx.Err())
}
