package jetstream

import (
	"testing"

	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/internal/jobqueuetest"
)

func TestItKeepsTheWordsOfAQueue(t *testing.T) {
	jobqueuetest.Run(t, jobqueuetest.Engine{
		Largest: 512 << 10, TooLarge: 2 << 20,
		New: func(t *testing.T, o jobqueuetest.Options) (func() jobqueue.Queue, func()) {
			dir := t.TempDir()
			server := serve(t, dir)
			open := func() jobqueue.Queue {
				cfg := Config{Server: server, MaxQueued: o.MaxQueued, MaxInFlight: o.MaxInFlight, AckWait: o.AckWait, Dedupe: o.Dedupe, Policy: o.Policy, Limiter: o.Limiter,
					Wait: await.Limit} // on a busy disk an answer may take longer than the default
				q, err := Open(t.Context(), cfg)
				check(t, err)
				return q
			}
			return open, func() {
				check(t, server.Close(t.Context()))
				server = serve(t, dir)
			}
		},
	})
}
