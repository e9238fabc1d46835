package proof

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/jetstream"
)

// roleVar is the environment variable that makes the test binary play a role.
const roleVar = "SPILLWAY_PROOF_ROLE"

// task is the task of a process.
type task struct {
	Role string
	ID   string // unique to the process
	Dir  string // folder of the ledgers
	Site site
	Node int // index of a cluster's node
}

// site is the place and the settings of the queue.
type site struct {
	Store    string   // folder of the servers
	Addrs    []string // addresses of the servers
	Routes   []string // addresses of the routes between the nodes of a cluster
	InFlight int
	Attempts int
	AckWait  time.Duration
	Wait     time.Duration
}

func (s site) open(ctx context.Context) (jobqueue.Queue, error) {
	cfg := jetstream.Config{
		URL: "nats://" + strings.Join(s.Addrs, ",nats://"), MaxInFlight: s.InFlight, AckWait: s.AckWait, Replicas: len(s.Addrs), MaxQueued: 1000, Wait: s.Wait,
		Policy: jobqueue.Policy{MaxAttempts: s.Attempts, Backoff: 10 * time.Millisecond, MaxBackoff: 20 * time.Millisecond},
	}
	for {
		q, err := jetstream.Open(ctx, cfg)
		if err == nil || ctx.Err() != nil {
			return q, err
		}
		if !errors.Is(err, jobqueue.ErrUnavailable) {
			fmt.Fprintln(os.Stderr, "open:", err) // harmless while a cluster has no leader, unless it repeats for long
		}
		pause(ctx, 50*time.Millisecond)
	}
}

// pause prevents a busy loop, or simulates the work of a job. No result depends on its length.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

var roles = map[string]func(context.Context, task) error{"server": serve, "producer": produce, "worker": work, "node": node}

func TestMain(m *testing.M) {
	text := os.Getenv(roleVar)
	if text == "" {
		os.Exit(m.Run())
	}
	var t task
	err := json.Unmarshal([]byte(text), &t)
	if err == nil {
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // standard input ends when the harness closes it or dies
			cancel()
			time.AfterFunc(await.Limit, func() { os.Exit(3) })
		}()
		err = roles[t.Role](ctx, t)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, t.ID+":", err)
		os.Exit(1)
	}
}

// ready tells the harness that a process has begun its work.
func ready() { fmt.Println("ready") }

const writers = 4 // writers of a producer

// produce enqueues jobs and records the acknowledged ones.
func produce(ctx context.Context, t task) error {
	record, err := openLedger(filepath.Join(t.Dir, "acked-"+t.ID), true)
	if err != nil {
		return err
	}
	q, err := t.Site.open(ctx)
	if err != nil {
		return err
	}
	ready()
	var all sync.WaitGroup
	failed := make([]error, writers)
	for w := range writers {
		all.Go(func() {
			for n := 0; ctx.Err() == nil && failed[w] == nil; n++ {
				failed[w] = enqueue(ctx, q, record, fmt.Sprintf("%s%s.%d.%d", fate(), t.ID, w, n))
			}
		})
	}
	all.Wait()
	return errors.Join(append(failed, q.Close())...)
}

// fate returns the prefix of a key, now and then of a planted dead letter.
func fate() string {
	switch rand.IntN(50) {
	case 0:
		return cursed
	case 1:
		return barren
	}
	return fine
}

// enqueue tries until the job is acknowledged.
func enqueue(ctx context.Context, q jobqueue.Queue, record *ledger, key string) error {
	priority := spillway.Low + spillway.Priority(rand.IntN(4))
	for {
		receipt, err := q.Enqueue(ctx, jobqueue.Job{Key: key, Priority: priority, Payload: []byte(key)})
		switch rejection, full := errors.AsType[*spillway.Rejection](err); {
		case err == nil && receipt.Key != key:
			return fmt.Errorf("a receipt for %q, not for %q", receipt.Key, key)
		case err == nil:
			return record.add(key)
		case ctx.Err() != nil:
			return ctx.Err()
		case full && rejection.Reason == spillway.ReasonQueueFull:
			pause(ctx, min(rejection.RetryAfter, 100*time.Millisecond))
		case !errors.Is(err, jobqueue.ErrUnavailable):
			return fmt.Errorf("Enqueue: %w", err)
		}
	}
}

// work does jobs and records the ones that are done.
func work(ctx context.Context, t task) error {
	record, err := openLedger(filepath.Join(t.Dir, "done-"+t.ID), false)
	if err != nil {
		return err
	}
	q, err := t.Site.open(ctx)
	if err != nil {
		return err
	}
	ready()
	err = q.Work(ctx, func(ctx context.Context, d *jobqueue.Delivery) error {
		if string(d.Payload) != d.Key {
			return jobqueue.Dead("the payload was changed")
		}
		if err := record.add("started", d.Key); err != nil {
			return err
		}
		switch {
		case strings.HasPrefix(d.Key, cursed):
			return jobqueue.Dead("cursed")
		case strings.HasPrefix(d.Key, fatal):
			os.Exit(1)
		case strings.HasPrefix(d.Key, barren):
			return errors.New("barren")
		}
		pause(ctx, rand.N(4*time.Millisecond)) // so that a kill hits running jobs
		return record.add("done", d.Key)
	})
	return errors.Join(err, q.Close())
}
