package app

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/memory"
)

// A program that links this package and no engine says so, before it makes anything.
func TestExportsNeedAnEngine(t *testing.T) {
	c := quick()
	c.Exports.Dir = t.TempDir() + "/exports"
	if err := c.Run(t.Context(), new(bytes.Buffer), new(bytes.Buffer)); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "no queue for them") {
		t.Error(err)
	}
}

// slowQueue is an Engine whose queue drains as the test says.
type slowQueue struct {
	jobqueue.Queue
	drain func(context.Context) error
}

func (q *slowQueue) Open(_ context.Context, _, _, _ string, p jobqueue.Policy, _ *slog.Logger) (jobqueue.Queue, func() error, error) {
	var err error
	q.Queue, err = memory.Open(memory.Config{Policy: p})
	return q, func() error { return nil }, err
}

func (q *slowQueue) Drain(ctx context.Context) error {
	return errors.Join(q.drain(ctx), q.Queue.Drain(ctx))
}

// A queue that does not answer takes none of the time that callers have to be answered in.
func TestAQueueThatIsAwayDoesNotKeepAServiceFromStopping(t *testing.T) {
	c := quick()
	address := make(chan string, 1)
	c.Exports.Dir, c.Shutdown.Timeout = t.TempDir()+"/exports", time.Minute
	c.Engine = &slowQueue{drain: func(ctx context.Context) error {
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
	}}
	r := start(t, c)
	address <- r.addr
	if report, err := r.report(t); err != nil {
		t.Errorf("%v; %d were answered after it was told to stop", err, report.Requests.OK)
	}
}
