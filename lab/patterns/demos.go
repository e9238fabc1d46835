package patterns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
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

var asked = Job{Config: Config{Patients: 10_000}}

// notUnderRace replaces demonstrations of data races in programs built with the race
// detector, which would end them at the race that they show.
const notUnderRace = "Not shown: this program was built with the race detector, and the fault is a data race."

func earlyReturn(ctx context.Context) (results.Demo, error) {
	const requests, clients = 1000, 50
	if usage.Race {
		return results.Demo{Outcome: notUnderRace}, nil
	}
	store := &specimen.Simulated{MinLatency: 2 * time.Millisecond, MaxLatency: 10 * time.Millisecond}
	var printed, ours counter
	err := errors.Join(
		ask(ctx, routed(specimen.EarlyReturn{Store: store}), clients, requests, func(answer *http.Response, body []byte) {
			printed.add(answer.StatusCode == http.StatusOK && len(body) == 0)
		}),
		ask(ctx, routed(patiently(store)), clients, requests, func(answer *http.Response, body []byte) {
			ours.add(answer.StatusCode == http.StatusOK && len(body) == 0)
		}))
	return results.Demo{
		Outcome: fmt.Sprintf("As printed, %d of %d requests got an empty 200; from a handler that waits for its goroutine %d of %d did.", printed.Load(), requests, ours.Load(), requests),
		Counts:  []results.NamedCount{{Name: "requests to each", N: requests}, printed.named("empty 200, as printed"), ours.named("empty 200, ours")},
	}, err
}

// sharedReply is a function call with the encoding of a handler, a millisecond after
// the reply: the time of an audit line or a contended lock.
func sharedReply(ctx context.Context) (results.Demo, error) {
	const requests, clients, workers = 50_000, 200, 20
	meanwhile := func() { time.Sleep(time.Millisecond) }
	if usage.Race {
		return results.Demo{Outcome: notUnderRace}, nil
	}
	var store specimen.Simulated
	demo := results.Demo{Counts: []results.NamedCount{{Name: "requests to each", N: requests}}}
	count := func(name string, answer func(id string, first func()) ([]byte, error)) (string, error) {
		var empty, other counter
		_, err := loadgen.Run(ctx, loadgen.Config{
			Closed: &loadgen.Closed{Clients: clients, Requests: requests},
			Target: loadgen.TargetFunc(func(_ context.Context, n uint64) loadgen.Outcome {
				id := asked.ID(n)
				body, err := answer(id, meanwhile)
				got := patientIn(body)
				empty.add(err == nil && got == "")
				other.add(got != "" && got != id)
				return loadgen.FromError(err)
			}),
		})
		demo.Counts = append(demo.Counts, empty.named("empty, "+name), other.named("another patient, "+name))
		return fmt.Sprintf("%s, %d are empty and %d carry another patient", name, empty.Load(), other.Load()), errors.Join(err, ctx.Err())
	}
	said := make([]string, 2)
	for i, name := range []string{"as printed", "cleared on Get only"} {
		s, err := specimen.New([]string{specimen.SharedOnPut, specimen.SharedOnGet}[i], &store, specimen.Config{Workers: workers, Queue: clients, Wait: time.Minute})
		if err != nil {
			return demo, err
		}
		defer s.Close()
		if said[i], err = count(name, s.Answer); err != nil {
			return demo, err
		}
	}
	pool, err := workerpool.New(workerpool.Config{MaxWorkers: workers, QueueSize: clients})
	if err != nil {
		return demo, err
	}
	ours, err := count("ours", ownedReplies(ctx, pool, &store))
	demo.Outcome = fmt.Sprintf("Of %d replies %s; %s; %s.", requests, said[0], said[1], ours)
	return demo, errors.Join(err, pool.Drain(ctx))
}

func lateRetryAfter(ctx context.Context) (results.Demo, error) {
	const requests, clients = 500, 50
	one, err := limiter.New(limiter.Config{Law: limit.NewFixed(1), QueueSize: -1})
	if err != nil {
		return results.Demo{}, err
	}
	protect, err := admissionhttp.New(admissionhttp.Config{Limiter: one})
	if err != nil {
		return results.Demo{}, err
	}
	var demo results.Demo
	count := func(name string, h http.Handler) (string, error) {
		var refused, without counter
		err := ask(ctx, h, clients, requests, func(answer *http.Response, _ []byte) {
			is := answer.StatusCode == http.StatusServiceUnavailable
			refused.add(is)
			without.add(is && answer.Header.Get("Retry-After") == "")
		})
		demo.Counts = append(demo.Counts, refused.named("refused, "+name), without.named("without Retry-After, "+name))
		return fmt.Sprintf("%d of %d", without.Load(), refused.Load()), err
	}
	store := &specimen.Simulated{MinLatency: 20 * time.Millisecond, MaxLatency: 20 * time.Millisecond}
	printed, err1 := count("as printed", routed(http.HandlerFunc(specimen.LateRetryAfter)))
	ours, err2 := count("ours", protect(routed(patiently(store))))
	demo.Outcome = fmt.Sprintf("As printed, %s refusals came without Retry-After; of ours %s did.", printed, ours)
	return demo, errors.Join(err1, err2)
}

// patiently answers each request in a goroutine as EarlyReturn does, and waits for it.
func patiently(store specimen.Store) http.HandlerFunc {
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
func ownedReplies(ctx context.Context, pool *workerpool.Pool, store specimen.Store) func(string, func()) ([]byte, error) {
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

func routed(h http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /api/v1/patients/{id}", h)
	return mux
}

// patientIn is the patient that a reply speaks of; "" if none.
func patientIn(body []byte) string {
	var reply specimen.Reply
	if json.Unmarshal(body, &reply) != nil || reply.Patient == nil {
		return ""
	}
	return reply.Patient.ID
}

type counter struct{ atomic.Int64 }

func (c *counter) named(name string) results.NamedCount {
	return results.NamedCount{Name: name, N: float64(c.Load())}
}

func (c *counter) add(yes bool) {
	if yes {
		c.Add(1)
	}
}

// ask serves h on loopback, sends it requests for different patients from that many
// clients and shows every answer to see, which must be safe for concurrent use.
func ask(ctx context.Context, h http.Handler, clients, requests int, see func(answer *http.Response, body []byte)) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	web := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
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
