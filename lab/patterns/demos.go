package patterns

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/patterns/specimen"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/loadgen"
	"github.com/spillway-go/spillway/objectpool"
	"github.com/spillway-go/spillway/workerpool"
)

// demonstrations run faulty code, and the same over Spillway's packages: ours.
var demonstrations = experiment.Staged{Role: "patterns-demo-", Acts: []experiment.Act{
	{ID: "early-return", Title: "the handler that returns before its goroutine writes", Run: earlyReturn},
	{ID: "shared-reply", Title: "the pooled response that is given back before it is encoded", Run: sharedReply},
	{ID: "late-retry-after", Title: "Retry-After set after the body", Run: lateRetryAfter},
}}

func earlyReturn(ctx context.Context) (results.Demo, error) {
	const requests, clients = 1000, 50
	if raceEnabled {
		return results.Demo{Outcome: notUnderRace}, nil
	}
	store := &specimen.Simulated{MinLatency: 2 * time.Millisecond, MaxLatency: 10 * time.Millisecond}
	empty := func(h http.Handler) (int, error) {
		var n counter
		err := ask(ctx, h, clients, requests, func(_ string, status int, _ http.Header, body []byte) {
			n.add(status == http.StatusOK && len(body) == 0)
		})
		return n.n, err
	}
	printed, err := empty(routed(specimen.EarlyReturn{Store: store}))
	if err != nil {
		return results.Demo{}, err
	}
	ours, err := empty(routed(patiently(store)))
	return results.Demo{
		Outcome: fmt.Sprintf("As printed, %d of %d requests got an empty 200; from a handler that waits for its goroutine %d of %d did.", printed, requests, ours, requests),
		Counts: []results.NamedCount{
			{Name: "requests to each", N: requests}, {Name: "empty 200, as printed", N: float64(printed)}, {Name: "empty 200, ours", N: float64(ours)},
		},
	}, err
}

// sharedReply is a function call with the encoding of a handler, a millisecond after
// the reply: the time of an audit line or a contended lock.
func sharedReply(ctx context.Context) (results.Demo, error) {
	const requests, clients, workers = 50_000, 200, 20
	meanwhile := func() { time.Sleep(time.Millisecond) }
	if raceEnabled {
		return results.Demo{Outcome: notUnderRace}, nil
	}
	var store specimen.Simulated
	demo := results.Demo{Counts: []results.NamedCount{{Name: "requests to each", N: requests}}}
	count := func(name string, answer func(id string, first func()) ([]byte, error)) (empty, foreign int, err error) {
		var none, other counter
		_, err = loadgen.Run(ctx, loadgen.Config{
			Closed: &loadgen.Closed{Clients: clients, Requests: requests},
			Target: loadgen.TargetFunc(func(_ context.Context, n uint64) loadgen.Outcome {
				id := specimen.ID(1 + int(n*7919%10_000))
				body, err := answer(id, meanwhile)
				got := patientIn(body)
				none.add(err == nil && got == "")
				other.add(got != "" && got != id)
				return loadgen.FromError(err)
			}),
		})
		demo.Counts = append(demo.Counts, results.NamedCount{Name: "empty, " + name, N: float64(none.n)},
			results.NamedCount{Name: "another patient, " + name, N: float64(other.n)})
		return none.n, other.n, errors.Join(err, ctx.Err())
	}
	onPut := specimen.NewSharedReply(&store, workers, clients, specimen.ClearOnPut)
	defer onPut.Close()
	emptyPut, foreignPut, err := count("as printed", onPut.Answer)
	if err != nil {
		return demo, err
	}
	onGet := specimen.NewSharedReply(&store, workers, clients, specimen.ClearOnGet)
	defer onGet.Close()
	emptyGet, foreignGet, err := count("cleared on Get only", onGet.Answer)
	if err != nil {
		return demo, err
	}
	pool, err := workerpool.New(workerpool.Config{MaxWorkers: workers, QueueSize: clients})
	if err != nil {
		return demo, err
	}
	emptyOurs, foreignOurs, err := count("ours", ownedReplies(ctx, pool, &store))
	demo.Outcome = fmt.Sprintf("Of %d replies as printed %d are empty and %d carry another patient; cleared on Get only, %d and %d; ours, %d and %d.",
		requests, emptyPut, foreignPut, emptyGet, foreignGet, emptyOurs, foreignOurs)
	return demo, errors.Join(err, pool.Drain(ctx))
}

// notUnderRace replaces demonstrations of data races in programs built with the race
// detector, which would end them at the race that they show.
const notUnderRace = "Not shown: this program was built with the race detector, and the fault is a data race."

func lateRetryAfter(ctx context.Context) (results.Demo, error) {
	const requests, clients = 500, 50
	type counts struct{ refused, without counter }
	count := func(h http.Handler) (*counts, error) {
		var c counts
		return &c, ask(ctx, h, clients, requests, func(_ string, status int, header http.Header, _ []byte) {
			refused := status == http.StatusServiceUnavailable
			c.refused.add(refused)
			c.without.add(refused && header.Get("Retry-After") == "")
		})
	}
	printed, err := count(routed(http.HandlerFunc(specimen.LateRetryAfter)))
	if err != nil {
		return results.Demo{}, err
	}
	one, err := limiter.New(limiter.Config{Law: limit.NewFixed(1), QueueSize: -1})
	if err != nil {
		return results.Demo{}, err
	}
	protect, err := admissionhttp.New(admissionhttp.Config{Limiter: one})
	if err != nil {
		return results.Demo{}, err
	}
	store := &specimen.Simulated{MinLatency: 20 * time.Millisecond, MaxLatency: 20 * time.Millisecond}
	ours, err := count(protect(routed(patiently(store))))
	if err != nil {
		return results.Demo{}, err
	}
	return results.Demo{
		Outcome: fmt.Sprintf("As printed, %d of %d refusals came without Retry-After; of ours %d of %d did.",
			printed.without.n, printed.refused.n, ours.without.n, ours.refused.n),
		Counts: []results.NamedCount{
			{Name: "refused, as printed", N: float64(printed.refused.n)}, {Name: "without Retry-After, as printed", N: float64(printed.without.n)},
			{Name: "refused, ours", N: float64(ours.refused.n)}, {Name: "without Retry-After, ours", N: float64(ours.without.n)},
		},
	}, nil
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

type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) add(yes bool) {
	if !yes {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}

// ask serves h on loopback, sends it requests for different patients from that
// many clients and shows every answer to see, which must be safe for concurrent
// use.
func ask(ctx context.Context, h http.Handler, clients, requests int, see func(id string, status int, header http.Header, body []byte)) error {
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
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			for n := c; n < requests && ctx.Err() == nil; n += clients {
				id := specimen.ID(1 + n*7919%10_000)
				if err := askOne(ctx, client, "http://"+listener.Addr().String()+"/api/v1/patients/"+id, id, see); err != nil {
					cancel(err)
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

func askOne(ctx context.Context, client *http.Client, url, id string, see func(string, int, http.Header, []byte)) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var body bytes.Buffer
	if _, err := io.Copy(&body, resp.Body); err != nil {
		return err
	}
	see(id, resp.StatusCode, resp.Header, body.Bytes())
	return nil
}
