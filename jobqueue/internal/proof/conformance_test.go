package proof

import (
	"context"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/embedded"
	"github.com/spillway-go/spillway/jobqueue/internal/jobqueuetest"
	"github.com/spillway-go/spillway/jobqueue/jetstream"
)

// keptIn holds the server with the jobs of a check.
type keptIn struct {
	cfg    embedded.Config
	server *embedded.Server
}

// served is a queue and the server that keeps its jobs.
type served struct {
	jobqueue.Queue
	in *keptIn
}

// partsOf are the streams and consumers of a queue.
var partsOf = []string{
	"spillway-jobs", "spillway-jobs-dead", "spillway-jobs-slots", "spillway-jobs-returns",
	"spillway-jobs low", "spillway-jobs normal", "spillway-jobs high", "spillway-jobs critical", "spillway-jobs-slots slots",
}

func TestJetStreamKeepsTheWordsOfAQueue(t *testing.T) {
	jobqueuetest.Run(t, jobqueuetest.Engine{
		Largest: 512 << 10, TooLarge: 2 << 20,
		New: func(t *testing.T, o jobqueuetest.Options) func() jobqueue.Queue {
			in := &keptIn{cfg: embedded.Config{Dir: t.TempDir()}}
			in.server = start(t, in.cfg)
			return func() jobqueue.Queue {
				cfg := jetstream.Config{Server: in.server, MaxQueued: o.MaxQueued, MaxInFlight: o.MaxInFlight, AckWait: o.AckWait, Dedupe: o.Dedupe, Policy: o.Policy, Limiter: o.Limiter,
					Wait: await.Limit} // on a busy disk an answer may take longer than the default
				q, err := jetstream.Open(t.Context(), cfg)
				if err != nil {
					t.Fatal(err)
				}
				return served{q, in}
			}
		},
		Parts: partsOf,
		Lose: func(t *testing.T, q jobqueue.Queue, part string) {
			stream, consumer, ok := strings.Cut(part, " ")
			nc, err := nats.Connect("", nats.InProcessServer(q.(served).in.server), nats.Timeout(await.Limit))
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			client, err := js.New(nc, js.WithDefaultTimeout(await.Limit))
			if err == nil && ok {
				err = client.DeleteConsumer(t.Context(), stream, consumer)
			} else if err == nil {
				err = client.DeleteStream(t.Context(), stream)
			}
			if err != nil {
				t.Fatal(err)
			}
		},
		Restart: func(t *testing.T, q jobqueue.Queue) {
			in := q.(served).in
			if err := in.server.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			in.server = start(t, in.cfg)
		},
	})
}

// start starts a server that ends with the test.
func start(t *testing.T, cfg embedded.Config) *embedded.Server {
	t.Helper()
	server, err := embedded.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return server
}
