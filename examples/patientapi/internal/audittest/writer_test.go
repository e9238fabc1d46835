package audittest_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/audit"
	"github.com/spillway-go/spillway/examples/patientapi/internal/assert"
	"github.com/spillway-go/spillway/examples/patientapi/internal/audittest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/internal/await"
)

// newWriter returns a writer to a storage whose commits take a second each.
func newWriter(t *testing.T, mostAtOnce int) (*audit.Writer, *audittest.Memory) {
	t.Helper()
	m := new(audittest.Memory)
	m.Before(func(ctx context.Context) error {
		select {
		case <-time.After(time.Second):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	w, err := audit.NewWriter(t.Context(), audit.WriterConfig{Storage: m, MostAtOnce: mostAtOnce})
	require.NoError(t, err)
	return w, m
}

func event(n int) audit.Event { return audit.Event{RequestID: strconv.Itoa(n)} }

func TestCallersShareACommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := newWriter(t, 0)
		start := time.Now()
		var callers sync.WaitGroup
		for n := range 100 {
			callers.Go(func() {
				assert.NoError(t, w.Record(t.Context(), event(n)))
			})
		}
		callers.Wait()
		if took := time.Since(start); took > 2*time.Second+5*time.Millisecond {
			t.Errorf("it took %v: the first commit, and one for all who came meanwhile", took)
		}
		if s := w.Stats(); s.Recorded != 100 || s.Commits > 2 || s.Waiting != 0 {
			t.Errorf("%+v", s)
		}
		if err := w.Close(); err != nil || len(m.Events()) != 100 {
			t.Errorf("%v, %d records", err, len(m.Events()))
		}
	})
}

// While callers keep coming a commit waits for them, but not for ever.
func TestACommitWaitsForCallersThatKeepComing(t *testing.T) {
	for _, c := range []struct {
		every   time.Duration
		wait    time.Duration
		commits uint64
	}{{100 * time.Microsecond, 8 * time.Millisecond, 12}, {10 * time.Millisecond, time.Millisecond, 400}} {
		synctest.Test(t, func(t *testing.T) {
			var m audittest.Memory
			m.Before(func(context.Context) error { time.Sleep(time.Millisecond); return nil })
			w, err := audit.NewWriter(t.Context(), audit.WriterConfig{Storage: &m})
			require.NoError(t, err)
			var callers sync.WaitGroup
			for n := range 400 {
				callers.Go(func() {
					start := time.Now()
					if err := w.Record(t.Context(), event(n)); err != nil || time.Since(start) > c.wait {
						t.Errorf("%v after %v", err, time.Since(start))
					}
				})
				time.Sleep(c.every)
			}
			callers.Wait()
			if s := w.Stats(); s.Commits > c.commits {
				t.Errorf("every %v: %d commits", c.every, s.Commits)
			}
			assert.NoError(t, w.Close())
		})
	}
}

// A caller that floods the service with requests kept what it had read itself off the
// record: both waited in one queue, for longer than Record has patience.
func TestAFloodOfRefusalsKeepsNoReadOffTheRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := newWriter(t, 4) // four records a second
		var flood, readers sync.WaitGroup
		for n := range 100 {
			flood.Go(func() {
				e := event(n)
				e.Outcome = audit.Shed
				_ = w.Record(t.Context(), e)
			})
		}
		for n := range 9 {
			readers.Go(func() {
				time.Sleep(time.Duration(n) * 500 * time.Millisecond)
				e := event(1000 + n)
				e.Outcome = audit.Granted
				start := time.Now()
				if err := w.Record(t.Context(), e); err != nil || time.Since(start) > 3*time.Second {
					t.Errorf("%v after %v", err, time.Since(start))
				}
			})
		}
		readers.Wait()
		flood.Wait()
		assert.NoError(t, w.Close())
		granted := 0
		for _, e := range m.Events() {
			if e.Outcome == audit.Granted {
				granted++
			}
		}
		if s := w.Stats(); granted != 9 || s.Failed == 0 {
			t.Errorf("%d granted, %+v", granted, s)
		}
		if r := audittest.Whole(t, m, nil); uint64(r.Lost) != w.Stats().Failed {
			t.Errorf("%+v, %+v", r, w.Stats())
		}
	})
}

// A context without an end does not make a caller wait without one.
func TestRecordHasPatienceOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m audittest.Memory
		m.Before(func(ctx context.Context) error {
			time.Sleep(8 * time.Second) // heeds no context
			return nil
		})
		w, err := audit.NewWriter(t.Context(), audit.WriterConfig{Storage: &m, MostAtOnce: 1, Patience: 3 * time.Second})
		require.NoError(t, err)
		var callers sync.WaitGroup
		for n := range 3 { // in the storage, in the queue, before it
			callers.Go(func() {
				start := time.Now()
				if err := w.Record(context.Background(), event(n)); err != audit.ErrPatience || time.Since(start) != 3*time.Second {
					t.Errorf("%v after %v", err, time.Since(start))
				}
			})
		}
		callers.Wait()
		if s := w.Stats(); s.Failed != 1 || s.Waiting != 0 {
			t.Errorf("%+v", s)
		}
		assert.NoError(t, w.Close())
		if r := audittest.Whole(t, &m, nil); r.Lost != 1 || r.Records != 3 {
			t.Errorf("%+v", r)
		}
	})
}

func TestAFailingStorageLosesNothingSilently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := newWriter(t, 0)
		broken := errors.New("disk full")
		m.Fail(broken)
		for n := range 3 {
			if err := w.Record(t.Context(), event(n)); !errors.Is(err, broken) {
				t.Error(err)
			}
		}
		if s := w.Stats(); s.Failed != 3 || s.Lost != 3 || s.Failures != 3 {
			t.Errorf("%+v", s)
		}
		m.Fail(nil)
		assert.NoError(t, w.Record(t.Context(), event(4)))
		events := m.Events()
		if len(events) != 2 || events[0].Outcome != audit.Gap || events[0].Count != 3 || events[0].Time.IsZero() || events[1].RequestID != "4" {
			t.Errorf("%+v", events)
		}
		if err := w.Close(); err != nil || w.Stats().Lost != 0 {
			t.Error(err)
		}
		audittest.Whole(t, m, nil)
	})
}

// Record racing Close either is on record or says that it is not.
func TestCloseRacesRecord(t *testing.T) { closeRaces(t, 50) }

func closeRaces(t *testing.T, times int) {
	t.Helper()
	for range times {
		m := new(audittest.Memory)
		w, err := audit.NewWriter(t.Context(), audit.WriterConfig{Storage: m, MostAtOnce: 4})
		require.NoError(t, err)
		var callers sync.WaitGroup
		for n := range 16 {
			callers.Go(func() {
				for {
					switch err := w.Record(t.Context(), event(n)); err {
					case nil:
					case audit.ErrClosed:
						return
					default:
						t.Error(err)
					}
				}
			})
		}
		await.True(t, "fifty are on record", func() bool { return w.Stats().Recorded >= 50 })
		_ = w.Close() // says what it could not write down any more
		callers.Wait()
		gaps := 0
		for _, e := range m.Events() {
			if e.Outcome == audit.Gap {
				gaps++
			}
		}
		if got := len(m.Events()) - gaps; uint64(got) != w.Stats().Recorded {
			t.Fatalf("%d records of %d acknowledged", got, w.Stats().Recorded)
		}
	}
}

// While nobody records, because nothing is sent to a service that cannot, the gap is
// written as soon as the storage takes it: a process that is killed then takes no count
// along.
func TestAWriterComesBackByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := newWriter(t, 0)
		broken := errors.New("away")
		m.Fail(broken)
		if err := w.Record(t.Context(), event(1)); !errors.Is(err, broken) || !errors.Is(w.Trouble(), broken) || !w.Stats().Failing {
			t.Errorf("%v, %v", err, w.Trouble())
		}
		time.Sleep(time.Minute)
		if s := w.Stats(); s.Lost != 1 || s.Failures < 20 || !s.Failing {
			t.Errorf("%+v", s)
		}
		m.Fail(nil)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if e := m.Events(); len(e) != 1 || e[0].Outcome != audit.Gap || e[0].Count != 1 || w.Trouble() != nil || w.Stats().Lost != 0 {
			t.Errorf("%+v, %v", e, w.Trouble())
		}
		assert.NoError(t, w.Close())
	})
}
