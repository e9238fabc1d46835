package patterns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
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

// tally counts what is seen, by name.
type tally struct {
	mu sync.Mutex
	results.Demo
}

func (t *tally) at(name string) *results.NamedCount {
	i := slices.IndexFunc(t.Counts, func(c results.NamedCount) bool { return c.Name == name })
	if i < 0 {
		i, t.Counts = len(t.Counts), append(t.Counts, results.NamedCount{Name: name})
	}
	return &t.Counts[i]
}

func (t *tally) add(name string, yes bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.at(name); yes {
		c.N++
	}
}

func earlyReturn(ctx context.Context) (results.Demo, error) {
	if usage.Race {
		return underRace, nil
	}
	t := tally{Demo: results.Demo{Counts: []results.NamedCount{{Name: "requests to each", N: 1000}}}}
	store := &specimen.Simulated{MinLatency: 2 * time.Millisecond, MaxLatency: 10 * time.Millisecond}
	count := func(name string, h http.Handler) error {
		return ask(ctx, h, 1000, func(answer *http.Response, body []byte) {
			t.add("empty 200, "+name, answer.StatusCode == http.StatusOK && len(body) == 0)
		})
	}
	err := errors.Join(count("as printed", specimen.EarlyReturn{Store: store}), count("ours", patiently(store)))
	t.Outcome = fmt.Sprintf("As printed, %.0f of 1000 requests got an empty 200; from a handler that waits for its goroutine %.0f of 1000 did.",
		t.at("empty 200, as printed").N, t.at("empty 200, ours").N)
	return t.Demo, err
}

// sharedReply is a function call with the encoding of a handler, a millisecond after
// the reply: the time of an audit line or a contended lock.
func sharedReply(ctx context.Context) (results.Demo, error) {
	if usage.Race {
		return underRace, nil
	}
	const requests, clients, workers = 50_000, 200, 20
	var store specimen.Simulated
	t := tally{Demo: results.Demo{Outcome: "Of 50000 replies ", Counts: []results.NamedCount{{Name: "requests to each", N: requests}}}}
	count := func(name string, answer func(id string, first func()) ([]byte, error)) error {
		empty, other := "empty, "+name, "another patient, "+name
		_, err := loadgen.Run(ctx, loadgen.Config{
			Closed: &loadgen.Closed{Clients: clients, Requests: requests},
			Target: loadgen.TargetFunc(func(_ context.Context, n uint64) loadgen.Outcome {
				body, err := answer(asked.ID(n), func() { time.Sleep(time.Millisecond) })
				var reply specimen.Reply
				found := json.Unmarshal(body, &reply) == nil && reply.Patient != nil
				t.add(empty, err == nil && !found)
				t.add(other, found && reply.Patient.ID != asked.ID(n))
				return loadgen.FromError(err)
			}),
		})
		t.Outcome += fmt.Sprintf("%s %.0f are empty and %.0f carry another patient; ", name, t.at(empty).N, t.at(other).N)
		return errors.Join(err, ctx.Err())
	}
	for _, s := range [][2]string{{specimen.SharedOnPut, "as printed"}, {specimen.SharedOnGet, "cleared on Get only"}} {
		service, err := specimen.New(s[0], &store, specimen.Config{Workers: workers, Queue: clients, Wait: time.Minute})
		if err != nil {
			return t.Demo, err
		}
		defer service.Close()
		if err := count(s[1], service.Answer); err != nil {
			return t.Demo, err
		}
	}
	pool, err := workerpool.New(workerpool.Config{MaxWorkers: workers, QueueSize: clients})
	if err != nil {
		return t.Demo, err
	}
	err = count("ours", ownedReplies(ctx, pool, &store))
	t.Outcome = strings.TrimSuffix(t.Outcome, "; ") + "."
	return t.Demo, errors.Join(err, pool.Drain(ctx))
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
	var t tally
	count := func(name string, h http.Handler) error {
		return ask(ctx, h, 500, func(answer *http.Response, _ []byte) {
			refused := answer.StatusCode == http.StatusServiceUnavailable
			t.add("refused, "+name, refused)
			t.add("without Retry-After, "+name, refused && answer.Header.Get("Retry-After") == "")
		})
	}
	store := &specimen.Simulated{MinLatency: 20 * time.Millisecond, MaxLatency: 20 * time.Millisecond}
	err = errors.Join(count("as printed", http.HandlerFunc(specimen.LateRetryAfter)), count("ours", protect(patiently(store))))
	t.Outcome = fmt.Sprintf("As printed, %.0f of %.0f refusals came without Retry-After; of ours %.0f of %.0f did.",
		t.at("without Retry-After, as printed").N, t.at("refused, as printed").N, t.at("without Retry-After, ours").N, t.at("refused, ours").N)
	return t.Demo, err
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
// clients and shows every answer to see, which must be safe for concurrent use.
func ask(ctx context.Context, h http.Handler, requests int, see func(answer *http.Response, body []byte)) error {
	const clients = 50
	mux := http.NewServeMux()
	mux.Handle("GET /api/v1/patients/{id}", h)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = web.Serve(listener) }()
	defer web.Close()
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 10 * time.Second}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	one := func(n uint64) error {
		answer, err := client.Get("http://" + listener.Addr().String() + "/api/v1/patients/" + asked.ID(n))
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		see(answer, body)
		return err
	}
	_, err = loadgen.Run(ctx, loadgen.Config{
		Closed: &loadgen.Closed{Clients: clients, Requests: uint64(requests)},
		Target: loadgen.TargetFunc(func(_ context.Context, n uint64) loadgen.Outcome {
			if err := one(n); err != nil {
				cancel(err)
			}
			return loadgen.OK
		}),
	})
	return errors.Join(err, context.Cause(ctx))
}
