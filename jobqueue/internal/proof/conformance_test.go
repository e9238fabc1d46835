package proof

import (
	"context"
	"testing"

	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/embedded"
	"github.com/spillway-go/spillway/jobqueue/jetstream"
	"github.com/spillway-go/spillway/jobqueue/jobqueuetest"
)

func TestJetStreamKeepsTheWordsOfAQueue(t *testing.T) {
	jobqueuetest.Run(t, jobqueuetest.Engine{
		Largest: 512 << 10, TooLarge: 2 << 20,
		New: func(t *testing.T, o jobqueuetest.Options) func() jobqueue.Queue {
			server := start(t, embedded.Config{Dir: t.TempDir()})
			cfg := jetstream.Config{Server: server, MaxQueued: o.MaxQueued, MaxInFlight: o.MaxInFlight, AckWait: o.AckWait, Dedupe: o.Dedupe, Policy: o.Policy, Limiter: o.Limiter,
				Wait: await.Limit} // on a busy disk an answer may take longer than the default
			return func() jobqueue.Queue {
				q, err := jetstream.Open(t.Context(), cfg)
				if err != nil {
					t.Fatal(err)
				}
				return q
			}
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
