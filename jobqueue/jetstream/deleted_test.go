package jetstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	js "github.com/nats-io/nats.go/jetstream"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/internal/logtest"
	"github.com/spillway-go/spillway/jobqueue"
)

// The stream of jobs is deleted, and the dead letters stay: new jobs get the numbers of buried
// jobs.
func TestJobsOfAStreamMadeAgainAreNotTakenForDead(t *testing.T) {
	server := serve(t, t.TempDir())
	q := open(t, Config{Server: server})
	enqueue(t, q, jobqueue.Job{Key: "old"})
	stop := work(t, q, func(context.Context, *jobqueue.Delivery) error { return jobqueue.Dead("broken") })
	await.True(t, "a dead letter", func() bool { return stats(t, q).Dead == 1 })
	_ = stop()
	check(t, q.js.DeleteStream(within(t), q.names.jobs))
	_ = q.Close()
	q = open(t, Config{Server: server, Policy: jobqueue.Policy{MaxAttempts: 2, Backoff: time.Millisecond}})
	enqueue(t, q, jobqueue.Job{Key: "new"})
	work(t, q, func(context.Context, *jobqueue.Delivery) error { return errors.New("not today") })
	// The engine counts a job a moment after it has acknowledged it: no depth may also mean not yet.
	await.True(t, "the second job is buried too", func() bool {
		s := stats(t, q)
		return s.Buried == 1 && s.Dead == 2 && s.Depth == jobqueue.Depth{}
	})
}

// The stream of dead letters is deleted: new dead letters get the numbers of letters that were just
// replayed.
func TestDeadLettersOfAStreamMadeAgainCanBeReplayed(t *testing.T) {
	server := serve(t, t.TempDir())
	for _, key := range []string{"first", "second"} {
		q := open(t, Config{Server: server})
		enqueue(t, q, jobqueue.Job{Key: key})
		stop := work(t, q, func(context.Context, *jobqueue.Delivery) error { return jobqueue.Dead("broken") })
		await.True(t, "a dead letter", func() bool { return stats(t, q).Dead == 1 })
		_ = stop()
		check(t, q.Replay(within(t), 1))
		// The job may have gone to a request of the ended Work. That gives the job back, but the engine counts the job
		// as in flight until somebody asks again.
		again := make(chan struct{}, 1)
		stop = work(t, q, func(context.Context, *jobqueue.Delivery) error { again <- struct{}{}; return nil })
		await.Receive(t, key+" is a job again", again)
		_ = stop()
		check(t, q.js.DeleteStream(within(t), q.names.dead))
		_ = q.Close()
	}
}

// A burial that the engine refused gave the job back. The next run buried the job without the error
// of the last run: "delivered 1 times and never finished".
func TestADeadLetterThatIsRefusedAtFirstKeepsItsReason(t *testing.T) {
	var log logtest.Log
	q := open(t, Config{Policy: jobqueue.Policy{MaxAttempts: 1}, Logger: log.Logger()})
	resize := func(most int64) {
		stream, err := q.js.Stream(within(t), q.names.dead)
		check(t, err)
		cfg := stream.CachedInfo().Config
		cfg.MaxBytes, cfg.Discard = most, js.DiscardNew
		if _, err := q.js.UpdateStream(within(t), cfg); err != nil {
			t.Fatal(err)
		}
	}
	resize(1)
	ran := make(chan struct{}, 10)
	work(t, q, func(context.Context, *jobqueue.Delivery) error {
		ran <- struct{}{}
		return errors.New("the disk is blue")
	})
	enqueue(t, q, jobqueue.Job{Key: "a"})
	await.Receive(t, "the job runs", ran)
	await.True(t, "the dead letter is refused", func() bool { return strings.Contains(strings.Join(log.Lines(), ""), "cannot be written yet") })
	resize(-1)
	var dead []jobqueue.DeadJob
	await.True(t, "a dead letter", func() (some bool) {
		var err error
		dead, err = q.Dead(within(t), 1)
		return err == nil && len(dead) == 1
	})
	if dead[0].Reason != "the disk is blue" || len(ran) > 0 {
		t.Errorf("%+v, and it ran %d times more", dead[0], len(ran))
	}
}

// The history of a job that was given back is kept until the job has ended, however long that
// takes, and no longer.
func TestTheHistoryOfAJobEndsWithIt(t *testing.T) {
	q := open(t, Config{Policy: jobqueue.Policy{MaxAttempts: 1}})
	history := func() uint64 {
		info, err := q.returns.Info(within(t))
		check(t, err)
		return info.State.Msgs
	}
	runs, let := make(chan int, 10), make(chan struct{})
	stop := work(t, q, func(ctx context.Context, d *jobqueue.Delivery) error {
		runs <- d.Attempt
		<-ctx.Done()
		return ctx.Err()
	})
	enqueue(t, q, jobqueue.Job{Key: "a"})
	await.Receive(t, "the job runs", runs)
	_ = stop()
	await.True(t, "it is on record that the job was given back", func() bool { return history() == 1 })
	work(t, q, func(_ context.Context, d *jobqueue.Delivery) error { runs <- d.Attempt; <-let; return nil })
	if attempt := await.Receive(t, "the job runs again", runs); attempt != 1 {
		t.Errorf("attempt %d", attempt)
	}
	if n := history(); n != 1 {
		t.Errorf("%d records while it runs", n)
	}
	close(let)
	await.True(t, "nothing of it is on record", func() bool { return history() == 0 })
}

// An engine that was killed may have forgotten that it has delivered a job, as an engine whose
// consumer is deleted: the job's second run looks like the first, and each counted the job.
func TestAJobIsDoneOnceThoughItsDeliveryIsForgotten(t *testing.T) {
	q := open(t, Config{MaxInFlight: 2})
	running, end := make(chan bool, 9), make(chan bool)
	stop := work(t, q, func(context.Context, *jobqueue.Delivery) error {
		running <- true
		<-end
		return nil
	})
	enqueue(t, q, jobqueue.Job{})
	await.Receive(t, "it runs", running)
	lose(t, q, q.names.jobs, spillway.Normal.String())
	await.True(t, "the consumer is back", func() bool { _, err := q.Stats(within(t)); return err == nil })
	await.Receive(t, "it runs again", running) // rarely as the second attempt: see pull
	close(end)
	_ = stop() // waits for both
	if s := stats(t, q); s.Done != 1 {
		t.Errorf("one job is done %d times", s.Done)
	}
}

// telling is a server that tells when it has made a consumer.
type telling struct {
	js.JetStream
	made func()
}

func (s telling) CreateOrUpdateConsumer(ctx context.Context, stream string, cfg js.ConsumerConfig) (js.Consumer, error) {
	c, err := s.JetStream.CreateOrUpdateConsumer(ctx, stream, cfg)
	s.made()
	return c, err
}

// A new consumer delivers a job as soon as the server has made the consumer. Two runs that ended before the
// process knew that all parts were there again each counted the job.
func TestDeliveriesAreDoubtedBeforeAConsumerIsMadeAgain(t *testing.T) {
	q := open(t, Config{})
	enqueue(t, q, jobqueue.Job{})
	meta, err := taken(t, q).Metadata()
	check(t, err)
	lose(t, q, q.names.jobs, spillway.Normal.String())
	made := 0
	q.js = telling{q.js, func() {
		if made++; !q.renewedSince(meta.Timestamp) {
			t.Error("a run that ends now may be one of two, and is taken for the only one")
		}
	}}
	if !q.mend(within(t), true) || made == 0 {
		t.Errorf("%d consumers are made again", made)
	}
}

// lose deletes a stream, or one of its consumers.
func lose(t *testing.T, q *queue, stream, consumer string) {
	t.Helper()
	err := error(nil)
	if consumer == "" {
		err = q.js.DeleteStream(within(t), stream)
	} else {
		err = q.js.DeleteConsumer(within(t), stream, consumer)
	}
	check(t, err)
}

// Somebody deletes one of the nine objects of a queue, or the slots in their stream. Jobs were
// acknowledged and never run, and no log gave the reason.
func TestWhatIsDeletedOfAQueueIsMadeAgainWithOneLine(t *testing.T) {
	server := serve(t, t.TempDir())
	names := namesOf("jobs")
	all := [][2]string{{names.jobs, ""}, {names.dead, ""}, {names.returns, ""}, {names.slots, ""}, {names.slots, slotConsumer}}
	for _, p := range priorities {
		all = append(all, [2]string{names.jobs, p.String()})
	}
	for i, part := range slices.Concat(all, all) {
		busy := i < len(all) // Enqueue and Work notice the loss; otherwise Stats does
		log := &logtest.Log{}
		q := open(t, Config{Server: server, MaxQueued: 7, MaxInFlight: 3, AckWait: time.Hour, Dedupe: time.Hour, Logger: log.Logger()})
		runs := make(chan string, 9)
		handle := func(_ context.Context, d *jobqueue.Delivery) error {
			runs <- d.Key
			if strings.HasPrefix(d.Key, "dead") {
				return jobqueue.Dead("broken")
			}
			return nil
		}
		stop := func() error { return nil }
		if busy {
			stop = work(t, q, handle)
		}
		t.Log("without", part, busy)
		lose(t, q, part[0], part[1])
		if !busy {
			stats(t, q)
			stop = work(t, q, handle)
		}
		for _, p := range priorities {
			enqueue(t, q, jobqueue.Job{Priority: p})
			await.Receive(t, "a job of priority "+p.String(), runs)
		}
		enqueue(t, q, jobqueue.Job{Key: fmt.Sprint("dead ", i)})
		await.True(t, "all are done, and the last is a dead letter", func() bool { s := stats(t, q); return s.Buried == 1 && s.Depth == jobqueue.Depth{} })
		_ = stop()
		said := func() []string {
			return slices.DeleteFunc(log.Lines(), func(line string) bool { return strings.Contains(line, "became a dead letter") })
		}
		await.True(t, "the log has a line", func() bool { return len(said()) > 0 }) // once all parts are looked at
		if lines := said(); len(lines) != 1 || !strings.Contains(lines[0], part[0]) || !strings.Contains(lines[0], part[1]) {
			t.Errorf("without %v the log says %q", part, lines)
		}
		jobs, err := q.js.Stream(within(t), names.jobs)
		if err != nil || jobs.CachedInfo().Config.MaxMsgs != 7 || jobs.CachedInfo().Config.Duplicates != time.Hour {
			t.Errorf("without %v: %v", part, err)
		}
		for i, p := range priorities {
			if info, err := q.ready[i].Info(within(t)); err != nil || info.Config.AckWait != time.Hour {
				t.Errorf("without %v: the consumer of %v: %v", part, p, err)
			}
		}
		if info, err := q.js.Stream(within(t), names.slots); err != nil || info.CachedInfo().State.Msgs != 3 {
			t.Errorf("without %v: the slots: %v", part, err)
		}
		_ = q.Close()
	}
}

// The stream of slots exists, but somebody has removed its slots: no job runs.
func TestSlotsThatWereRemovedAreMadeAgain(t *testing.T) {
	log := &logtest.Log{}
	q := open(t, Config{MaxInFlight: 3, Logger: log.Logger()})
	stream, err := q.js.Stream(within(t), q.names.slots)
	check(t, err)
	check(t, stream.Purge(within(t)))
	stats(t, q)
	enqueue(t, q, jobqueue.Job{})
	ran := make(chan bool, 1)
	work(t, q, func(context.Context, *jobqueue.Delivery) error { ran <- true; return nil })
	await.Receive(t, "a job runs", ran)
	await.True(t, "the log has a line", func() bool { return len(log.Lines()) > 0 })
	if lines := log.Lines(); len(lines) != 1 {
		t.Errorf("the log says %q", lines)
	}
}

// A handler's answer for a job of the old stream contains only a number. It used to end the job
// with the same number in the new stream.
func TestAnAnswerForAJobThatWasDeletedEndsNoOther(t *testing.T) {
	// While the stream is made again, a request may end as the engine answers. That delivery counts as an attempt, so the
	// job has more than two.
	q := open(t, Config{Policy: jobqueue.Policy{MaxAttempts: 5, Backoff: time.Millisecond}})
	enqueue(t, q, jobqueue.Job{Key: "old"})
	old := taken(t, q)
	lose(t, q, q.names.jobs, "")
	enqueue(t, q, jobqueue.Job{Key: "new"})
	running, fail := make(chan string, 2), make(chan error, 2)
	work(t, q, func(_ context.Context, d *jobqueue.Delivery) error { running <- d.Key; return <-fail })
	await.Receive(t, "the second job runs", running)
	check(t, errors.Join(old.Ack(), q.nc.FlushWithContext(within(t))))
	fail <- errors.New("not today")
	await.Receive(t, "the second job runs again", running)
	fail <- nil
	await.True(t, "nothing is left", func() bool { return stats(t, q).Depth == jobqueue.Depth{} })
}

// A connection that came back used to check only the stream of jobs.
func TestAConnectionThatIsBackLooksAtAllParts(t *testing.T) {
	server := listen(t, t.TempDir(), "127.0.0.1:0")
	p := newProxy(t, server.URL())
	log := &logtest.Log{}
	q := open(t, Config{URL: p.url(), Logger: log.Logger()})
	lose(t, open(t, Config{URL: server.URL()}), q.names.jobs, "low")
	p.cut()
	await.True(t, "it is made again", func() bool {
		return slices.ContainsFunc(log.Lines(), func(line string) bool { return strings.Contains(line, "consumer low of "+q.names.jobs) })
	})
}
