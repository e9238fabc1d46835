package proof

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/jetstream"
)

func open(t *testing.T, cfg jetstream.Config) jobqueue.Queue {
	t.Helper()
	cfg.Wait = cmp.Or(cfg.Wait, await.Limit) // on a busy disk an answer may take longer than the default
	var q jobqueue.Queue
	await.True(t, "the queue is open", func() bool { // Config.Wait may be short, and the disk slow
		var err error
		if q, err = jetstream.Open(t.Context(), cfg); err != nil && !errors.Is(err, jobqueue.ErrUnavailable) {
			t.Fatal(err)
		}
		if err != nil {
			t.Log(err)
		}
		return err == nil
	})
	t.Cleanup(func() { _ = q.Close() })
	return q
}

// worker does jobs until the end of the test.
func worker(t *testing.T, q jobqueue.Queue) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- q.Work(ctx, func(context.Context, *jobqueue.Delivery) error { return nil }) }()
	t.Cleanup(func() { cancel(); <-ended })
}

// TestAJobThatEndsItsProcessTakesNoOtherAlong: each time the job ended its process, the other jobs
// of the process once lost an attempt too. They became dead letters together with the job, some
// without a run.
func TestAJobThatEndsItsProcessTakesNoOtherAlong(t *testing.T) {
	t.Parallel()
	const attempts, others = 3, 12
	f := &fleet{T: t, dir: t.TempDir(), site: site{Store: t.TempDir(), Addrs: []string{freeAddr(t)}, InFlight: 8, Attempts: attempts, AckWait: 3 * time.Second, Wait: 5 * time.Second}}
	f.await(f.start(task{Role: "server"}))
	q, err := f.site.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close() })
	for i := range 1 + others {
		key := fmt.Sprint(fine, i)
		if i == 0 {
			key = fatal
		}
		await.True(f, "a job is stored", func() bool { // an answer may take longer than site.open waits for it
			_, err := q.Enqueue(t.Context(), jobqueue.Job{Key: key, Payload: []byte(key)})
			return err == nil
		})
	}
	for {
		w := f.start(task{Role: "worker"})
		f.await(w)
		empty := false
		await.True(f, "the worker dies, or all is done", func() bool {
			select {
			case <-w.ended:
				return true
			default:
			}
			s, err := q.Stats(t.Context())
			empty = err == nil && s.Depth == jobqueue.Depth{}
			return empty
		})
		if empty {
			f.stop(w)
			break
		}
	}
	var dead []jobqueue.DeadJob
	await.True(f, "the dead letters are told", func() bool {
		dead, err = q.Dead(t.Context(), 99)
		return err == nil
	})
	if len(dead) != 1 || dead[0].Job.Key != fatal || dead[0].Attempts != attempts {
		t.Errorf("dead letters %+v", dead)
	}
	lines, err := readLedgers(f.dir, "done-")
	if err != nil {
		t.Fatal(err)
	}
	starts := 0
	for _, line := range lines {
		if line == "started "+fatal {
			starts++
		}
	}
	if starts == 0 || starts > attempts { // fewer if a worker held the job for AckWait without a run
		t.Errorf("it was started %d times", starts)
	}
}
