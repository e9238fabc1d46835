package outbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/embedded"
	"github.com/spillway-go/spillway/jobqueue/jetstream"
)

// roleVar is the environment variable that makes the test binary a relay.
const roleVar = "SPILLWAY_OUTBOX_RELAY"

// task is what such a process relays, and when the process ends itself.
type task struct {
	Site  site
	URL   string // of the server with the queue
	Lease time.Duration
	Acks  int // the process kills itself once the queue has acknowledged that many rows; zero: never
}

func TestMain(m *testing.M) {
	text := os.Getenv(roleVar)
	if text == "" {
		os.Exit(m.Run())
	}
	if err := relayFor(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func relayFor(text string) error {
	var in task
	if err := json.Unmarshal([]byte(text), &in); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the test
		cancel()
	}()
	db, err := sql.Open(in.Site.Driver, in.Site.DSN)
	if err != nil {
		return err
	}
	q, err := jetstream.Open(ctx, jetstream.Config{URL: in.URL, Wait: await.Limit})
	if err != nil {
		return err
	}
	left := in.Acks
	b, err := New(db, in.Site.Dialect, &recorder{Queue: q, after: func(jobqueue.Job) {
		if left--; left == 0 {
			if self, err := os.FindProcess(os.Getpid()); err == nil {
				_ = self.Kill()
			}
			select {}
		}
	}}, Config{Poll: 5 * time.Millisecond})
	if err != nil {
		return err
	}
	b.lease = in.Lease
	return b.Relay(ctx)
}

// start starts a process that relays. ended gets its result.
func start(t *testing.T, in task) (kill func(), ended <-chan error) {
	t.Helper()
	text, err := json.Marshal(in)
	noError(t, err)
	exe, err := os.Executable()
	noError(t, err)
	cmd := exec.Command(exe)
	cmd.Env, cmd.Stderr = append(os.Environ(), roleVar+"="+string(text)), os.Stderr
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	noError(t, cmd.Start())
	result := make(chan error, 1)
	go func() { result <- cmd.Wait() }()
	kill = func() { _ = cmd.Process.Kill() }
	t.Cleanup(kill)
	return kill, result
}

// Processes die between the queue's acknowledgement and the deletion of the row, and anywhere else,
// while transactions commit and roll back.
func TestAKilledRelayLosesNothingAndDoublesNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s site) {
		server := serve(t, embedded.Config{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
		q := overJetStream(t, jetstream.Config{URL: server.URL()})
		tickets := make(chan struct{}, 300) // of jobs that are not done: hundreds, and not as many as can be written
		done := worker(t, q, func() {
			select {
			case <-tickets:
			default: // done again
			}
		})
		b := open(t, s, q, Config{})
		b.lease = 50 * time.Millisecond
		in := task{Site: s, URL: server.URL(), Lease: b.lease}

		ctx, stop := context.WithCancel(t.Context())
		var committed atomic.Int64
		written := make(chan error, 1)
		go func() {
			for n := 0; ; n++ {
				select {
				case tickets <- struct{}{}:
				case <-ctx.Done():
					written <- nil
					return
				}
				err := b.within(t.Context(), func(tx *sql.Tx) error {
					job := jobqueue.Job{Key: fmt.Sprint("job ", committed.Load())}
					if n%5 == 4 {
						job.Key = "rolled back"
					}
					err := b.Enqueue(t.Context(), tx, job)
					if err == nil && n%5 == 4 {
						return errPlanted
					}
					return err
				})
				switch {
				case err == nil:
					committed.Add(1)
				case errors.Is(err, errPlanted):
					<-tickets
				default:
					written <- err
					return
				}
			}
		}()
		for _, acks := range []int{1, 2, 3, 10, 40} {
			in.Acks = acks
			_, ended := start(t, in)
			if err := await.Receive(t, "the process kills itself", ended); err == nil {
				t.Error("the process ended without an error")
			}
		}
		in.Acks = 0
		for range 3 {
			kill, ended := start(t, in)
			goal := len(done()) + 1 + rand.IntN(100)
			await.True(t, "jobs are done", func() bool { return len(done()) >= goal })
			kill()
			await.Receive(t, "the process ends", ended)
		}
		stop()
		noError(t, await.Receive(t, "the writer ends", written))
		begin(t, b)
		empty(t, b)
		want := int(committed.Load())
		await.True(t, "all are done", func() bool { return len(done()) >= want })
		for key, n := range done() {
			if n != 1 || key == "rolled back" {
				t.Errorf("%q was done %d times", key, n)
			}
		}
		n := stats(t, b)
		t.Logf("%d jobs committed, %d done; the last relay met %d that the queue had already", want, len(done()), n.Duplicates)
		if len(done()) != want || n.Refused != 0 {
			t.Errorf("%d of %d are done, %+v", len(done()), want, n)
		}
	})
}
