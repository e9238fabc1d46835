package patterns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/patterns/specimen"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/usage"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
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
	empty := func(answer *http.Response, body []byte) bool {
		return answer.StatusCode == http.StatusOK && len(body) == 0
	}
	printed, err1 := ask(ctx, specimen.EarlyReturn{Store: store}, requests, empty)
	ours, err2 := ask(ctx, patiently(store), requests, empty)
	return results.Demo{
		Outcome: fmt.Sprintf("As printed, %v of %d requests got an empty 200; from a handler that waits for its goroutine %v of %d did.", printed[0], requests, ours[0], requests),
		Counts: []results.NamedCount{
			{Name: "requests to each", N: requests}, {Name: "empty 200, as printed", N: printed[0]}, {Name: "empty 200, ours", N: ours[0]},
		},
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
		demo.Counts = append(demo.Counts, results.NamedCount{Name: "empty, " + name, N: float64(empty.Load())},
			results.NamedCount{Name: "another patient, " + name, N: float64(other.Load())})
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
	refused := func(answer *http.Response, _ []byte) bool { return answer.StatusCode == http.StatusServiceUnavailable }
	without := func(answer *http.Response, _ []byte) bool {
		return refused(answer, nil) && answer.Header.Get("Retry-After") == ""
	}
	printed, err1 := ask(ctx, http.HandlerFunc(specimen.LateRetryAfter), 500, refused, without)
	ours, err2 := ask(ctx, protect(patiently(store)), 500, refused, without)
	return results.Demo{
		Outcome: fmt.Sprintf("As printed, %v of %v refusals came without Retry-After; of ours %v of %v did.", printed[1], printed[0], ours[1], ours[0]),
		Counts: []results.NamedCount{
			{Name: "refused, as printed", N: printed[0]}, {Name: "without Retry-After, as printed", N: printed[1]},
			{Name: "refused, ours", N: ours[0]}, {Name: "without Retry-After, ours", N: ours[1]},
		},
	}, errors.Join(err1, err2)
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

// ask serves h on loopback, sends it requests for different patients from fifty
// clients and counts the answers of which each test is true.
func ask(ctx context.Context, h http.Handler, requests uint64, tests ...func(answer *http.Response, body []byte) bool) ([]float64, error) {
	const clients = 50
	mux := http.NewServeMux()
	mux.Handle("GET /api/v1/patients/{id}", h)
	web := httptest.NewServer(mux)
	defer web.Close()
	client := web.Client()
	client.Timeout = 10 * time.Second
	client.Transport.(*http.Transport).MaxIdleConnsPerHost = clients
	var mu sync.Mutex
	counts := make([]float64, len(tests))
	one := func(n uint64) error {
		answer, err := client.Get(web.URL + "/api/v1/patients/" + asked.ID(n))
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		mu.Lock()
		defer mu.Unlock()
		for i, is := range tests {
			if is(answer, body) {
				counts[i]++
			}
		}
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	_, err := loadgen.Run(ctx, loadgen.Config{
		Closed: &loadgen.Closed{Clients: clients, Requests: requests},
		Target: loadgen.TargetFunc(func(_ context.Context, n uint64) loadgen.Outcome {
			if err := one(n); err != nil {
				cancel(err)
			}
			return loadgen.OK
		}),
	})
	return counts, errors.Join(err, context.Cause(ctx))
}
