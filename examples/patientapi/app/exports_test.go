package app

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/memory"
)

// slowEngine opens a slowQueue that drains as the function says.
type slowEngine func(context.Context) error

func (e slowEngine) Open(_ context.Context, _, _, _ string, p jobqueue.Policy, _ *slog.Logger) (jobqueue.Queue, func() error, error) {
	q, err := memory.Open(memory.Config{Policy: p})
	return slowQueue{q, e}, func() error { return nil }, err
}

type slowQueue struct {
	jobqueue.Queue
	drain slowEngine
}

func (q slowQueue) Drain(ctx context.Context) error {
	return errors.Join(q.drain(ctx), q.Queue.Drain(ctx))
}

// A queue that does not answer takes none of the time that callers have to be answered in.
func TestAQueueThatIsAwayDoesNotKeepAServiceFromStopping(t *testing.T) {
	c := quick()
	address := make(chan string, 1)
	c.Exports.Dir, c.Shutdown.Timeout = t.TempDir()+"/exports", time.Minute
	c.Engine = slowEngine(func(ctx context.Context) error {
		for addr := <-address; ctx.Err() == nil; { // until callers are refused
			resp, err := http.DefaultClient.Do(asked(context.WithoutCancel(t.Context()), "http://"+addr+"/api/v1/patients/P000001"))
			if err != nil {
				return nil
			}
			resp.Body.Close()
			if resp.StatusCode == http.StatusServiceUnavailable {
				return nil
			}
		}
		return ctx.Err()
	})
	r := start(t, c)
	address <- r.addr
	if report, err := r.report(t); err != nil {
		t.Errorf("%v; %d were answered after it was told to stop", err, report.Requests.OK)
	}
}
