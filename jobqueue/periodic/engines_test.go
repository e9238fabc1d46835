package periodic

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/embedded"
	"github.com/spillway-go/spillway/jobqueue/jetstream"
)

// hurry gives a scheduler a clock that begins at a time and advances by each sleep at once, until the
// end.
func hurry(s *Scheduler, begin, end time.Time) {
	now := begin
	s.now = func() time.Time { return now }
	s.sleep = func(ctx context.Context, d time.Duration) error {
		if now = now.Add(d); now.After(end) {
			return errOver
		}
		return ctx.Err()
	}
}

var errOver = errors.New("the test is over")

func serve(t *testing.T, cfg embedded.Config) *embedded.Server {
	t.Helper()
	s, err := embedded.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

func connect(t *testing.T, cfg jetstream.Config) jobqueue.Queue {
	t.Helper()
	cfg.Wait = await.Limit // on a busy disk an answer may take longer than the default
	q, err := jetstream.Open(await.Context(t, "an open queue"), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close() })
	return q
}

// work runs n jobs, and all further jobs that the queue holds, and returns their keys.
func work(t *testing.T, q jobqueue.Queue, n int) (keys []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan string, 10_000)
	ended := make(chan error, 1)
	go func() {
		ended <- q.Work(ctx, func(_ context.Context, d *jobqueue.Delivery) error { done <- d.Key; return nil })
	}()
	for range n {
		keys = append(keys, await.Receive(t, "a run", done))
	}
	await.True(t, "an empty queue", func() bool {
		s, err := q.Stats(await.Context(t, "depths"))
		return err == nil && s.Ready+s.Delayed+s.InFlight == 0
	})
	cancel()
	await.Receive(t, "the end of Work", ended)
	close(done)
	for key := range done {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// Five processes with connections of their own see the instants at the same time, but for 40 seconds.
func TestJetStreamKeepsOneJobOfEachInstant(t *testing.T) {
	server := serve(t, embedded.Config{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	begin := time.Date(2026, 10, 24, 23, 0, 5, 0, time.UTC) // an hour before the clocks of Berlin are changed
	all, queues := make([]*Scheduler, 5), make([]jobqueue.Queue, 5)
	var wg sync.WaitGroup
	for i := range all {
		queues[i] = connect(t, jetstream.Config{URL: server.URL(), Dedupe: time.Hour}) // whatever the machine does
		var err error
		all[i], err = New(Config{Queue: queues[i], Entries: []Entry{{Name: "tidy", Schedule: parsed(t, "*/2 * * * *", zone(t, "Europe/Berlin")), Job: nothing}}})
		if err != nil {
			t.Fatal(err)
		}
		skew := time.Duration(i-2) * 10 * time.Second
		hurry(all[i], begin.Add(skew), begin.Add(200*time.Minute))
		wg.Go(func() {
			if err := all[i].Run(t.Context()); !errors.Is(err, errOver) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	var stored, duplicates uint64
	for _, s := range all {
		st := s.read()[0]
		stored, duplicates = stored+st.stored, duplicates+st.duplicates
		if st.failures != 0 || st.passed != 0 {
			t.Errorf("%+v", st)
		}
	}
	keys := work(t, queues[0], 101)
	if len(keys) != 101 || len(slices.Compact(keys)) != 101 || keys[0] != "tidy 2026-10-24T23:00:00Z" || keys[100] != "tidy 2026-10-25T02:20:00Z" {
		t.Errorf("%d: %s", len(keys), strings.Join(keys, ", "))
	}
	if stored != 101 || stored+duplicates < 500 {
		t.Errorf("%d stored, %d duplicates", stored, duplicates)
	}
}

// The server's memory of keys ends with the server, but for jobs that have not ended.
func TestAfterARestartOfTheServerAnInstantThatHasRunRunsAgain(t *testing.T) {
	dir := t.TempDir()
	start := func() (q jobqueue.Queue, stop func()) {
		server := serve(t, embedded.Config{Dir: dir})
		q = connect(t, jetstream.Config{Server: server})
		return q, func() {
			if err := errors.Join(q.Close(), server.Close(context.Background())); err != nil {
				t.Error(err)
			}
		}
	}
	deploy := func(q jobqueue.Queue, want stats) {
		t.Helper()
		s, err := New(Config{Queue: q, Entries: []Entry{each(t, "0 3 * * *", 0)}})
		if err != nil {
			t.Fatal(err)
		}
		hurry(s, at(t, "2026-01-01T03:00:20Z"), at(t, "2026-01-01T03:00:40Z"))
		if err := s.Run(t.Context()); !errors.Is(err, errOver) {
			t.Error(err)
		}
		if st := s.read()[0]; st.stored != want.stored || st.duplicates != want.duplicates {
			t.Errorf("%+v", st)
		}
	}
	q, stop := start()
	deploy(q, stats{stored: 1})
	stop()
	q, stop = start()
	deploy(q, stats{duplicates: 1}) // the job waits
	work(t, q, 1)
	deploy(q, stats{duplicates: 1}) // the job has ended
	stop()
	q, stop = start()
	deploy(q, stats{stored: 1})
	stop()
}
