package export

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/access"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/memory"
)

func TestAStoreThatFailsForLongFailsTheExport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := func(_ context.Context, call int64) error {
			if call > 120 {
				return patientapi.ErrUnavailable
			}
			return nil
		}
		q := newQueue(t, memory.Config{})
		e := newExports(t, q, newStore(t, down), t.TempDir())
		ticket, start := begin(t, e, Request{}), time.Now()
		stop := run(e)
		for status(t, e, ticket).State != Failed {
			time.Sleep(time.Second)
		}
		took := time.Since(start)
		stop()
		s := status(t, e, ticket)
		if !strings.Contains(s.Reason, "the patient store has not answered") || s.Files != nil || took < 5*time.Minute || took > time.Hour {
			t.Errorf("after %v: %+v", took, s)
		}
		dead, err := q.Dead(t.Context(), 9)
		if err != nil || len(dead) != 1 || dead[0].Reason != s.Reason || dead[0].Attempts != fruitless+1 {
			t.Errorf("%+v, %v", dead, err)
		}
	})
}

// A process may end, or its engine go away, when the failure is on disk and the dead letter is
// not written. The next run took the export for done, and no dead letter told of it.
func TestAFailureIsADeadLetterHoweverLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, memory.Config{})
		e := newExports(t, q, newStore(t, nil), t.TempDir())
		ticket := begin(t, e, Request{})
		_ = e.fail(ticket, patientapi.ErrUnavailable)
		stop := run(e)
		time.Sleep(time.Minute)
		stop()
		dead, err := q.Dead(t.Context(), 9)
		if err != nil || len(dead) != 1 || dead[0].Reason != status(t, e, ticket).Reason {
			t.Errorf("%+v, %v", dead, err)
		}
	})
}

// full is a file on a full disk.
type full struct{ file }

func (f full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestAFullDiskIsWaitedForAndThenAnError(t *testing.T) {
	for _, frees := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			store, q := newStore(t, nil), newQueue(t, memory.Config{})
			e := newExports(t, q, store, t.TempDir())
			begun, ticket := time.Now(), begin(t, e, Request{})
			healthy := e.disk.create
			e.disk.create = func(name string) (file, error) {
				f, err := healthy(name)
				later := !strings.Contains(name, endName+".json") && len(status(t, e, ticket).Files) == 0 && status(t, e, ticket).Patients >= 100
				if err == nil && later && !(frees && time.Since(begun) > time.Minute) {
					return full{f}, nil
				}
				return f, err
			}
			stop := run(e)
			time.Sleep(time.Hour)
			stop()
			if frees {
				whole(t, e, ticket, store)
				return
			}
			s := status(t, e, ticket)
			if s.State != Failed || !strings.Contains(s.Reason, "the disk of the service is full") || strings.Contains(s.Reason, "/") {
				t.Errorf("%+v", s)
			}
			if left, _ := os.ReadDir(e.disk.path(ticket)); len(left) != 2 {
				t.Errorf("left behind: %v", left)
			}
			if _, err := e.Open(ticket, "Patient-000001.ndjson"); !errors.Is(err, ErrNotFound) {
				t.Error(err)
			}
		})
	}
}

func TestADamagedExportSaysSoAndTheOthersGoOn(t *testing.T) {
	for name, damage := range map[string]func(path func(...string) string) error{
		"request":    func(path func(...string) string) error { return os.WriteFile(path(requestName), []byte("{"), 0o600) },
		"no request": func(path func(...string) string) error { return os.Remove(path(requestName)) },
		"part":       func(path func(...string) string) error { return os.WriteFile(path(folder(2), partName), nil, 0o600) },
		"wrong part": func(path func(...string) string) error { return os.Rename(path(folder(1)), path(folder(99))) },
		"end": func(path func(...string) string) error {
			return os.WriteFile(path(endName, "end.json"), []byte("["), 0o600)
		},
		"short file":  func(path func(...string) string) error { return os.Truncate(path(folder(3), "Patient"), 10) },
		"no file":     func(path func(...string) string) error { return os.Remove(path(folder(3), "Patient")) },
		"whose":       func(path func(...string) string) error { return os.Remove(path(folder(3), peopleName)) },
		"nothing yet": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits for the disk
			synctest.Test(t, func(t *testing.T) {
				store, q := newStore(t, nil), newQueue(t, memory.Config{})
				e := newExports(t, q, store, t.TempDir())
				poisoned, other := begin(t, e, Request{}), begin(t, e, Request{})
				path := func(names ...string) string { return e.disk.path(poisoned, names...) }
				if damage == nil { // before its first run
					require.NoError(t, os.WriteFile(path(requestName), []byte("null"), 0o600))
				}
				stop := run(e)
				synctest.Wait()
				if damage != nil {
					require.NoError(t, damage(path))
				}
				s, err := e.Status(poisoned)
				if err == nil && s.State == Complete {
					_, err = e.Open(poisoned, "Patient-000003.ndjson")
				}
				if !errors.Is(err, ErrDamaged) && s.State != Failed {
					t.Errorf("%s: %v, %+v", name, err, s)
				}
				whole(t, e, other, store)
				time.Sleep(25 * time.Hour)
				stop()
				if _, err := e.Status(other); !errors.Is(err, ErrNotFound) {
					t.Errorf("%s: %v", name, err)
				}
				if err := e.Cancel(poisoned); err != nil && !errors.Is(err, ErrNotFound) {
					t.Errorf("%s: %v", name, err)
				}
			})
		})
	}
}

func TestWhatIsTooMuchIsRejectedAndLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	e := newExports(t, newQueue(t, memory.Config{MaxQueued: 2}), newStore(t, nil), dir)
	e.cfg.Most = 3
	start := func() error {
		return e.Start(t.Context(), access.NewTicket("somebody"), Request{Types: Types, Started: time.Now()})
	}
	for range 2 {
		require.NoError(t, start())
	}
	check := func(what string) {
		t.Helper()
		var rejection *spillway.Rejection
		if err := start(); !errors.As(err, &rejection) || rejection.Reason != spillway.ReasonQueueFull {
			t.Errorf("%s: %v", what, err)
		}
		if left, _ := os.ReadDir(dir); len(left) != 2 {
			t.Errorf("%s: %v", what, left)
		}
	}
	check("a full queue")
	e.cfg.Most = 2
	check("a full folder")
	e.cfg.Queue, e.cfg.Most = away{}, 9
	if err := start(); !errors.Is(err, jobqueue.ErrUnavailable) {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 2 {
		t.Errorf("%v", left)
	}
}

// A full disk of the queue was rejected as a full queue, with the advice to come back in a
// moment.
func TestAFullDiskOfTheQueueIsADiskAndNoOverload(t *testing.T) {
	dir := t.TempDir()
	e := newExports(t, crammed{}, newStore(t, nil), dir)
	err := e.Start(t.Context(), access.NewTicket("somebody"), Request{Types: Types, Started: time.Now()})
	if !errors.Is(err, ErrDisk) || errors.Is(err, spillway.ErrRejected) || !strings.Contains(err.Error(), "12 MiB left") {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("%v", left)
	}
}

// crammed is a queue whose engine has no room on its disk.
type crammed struct{ jobqueue.Queue }

func (crammed) Enqueue(context.Context, jobqueue.Job) (jobqueue.Receipt, error) {
	return jobqueue.Receipt{}, fmt.Errorf("%w: 12 MiB left (%w)", jobqueue.ErrDiskFull, &spillway.Rejection{Reason: spillway.ReasonQueueFull, RetryAfter: time.Second})
}

// away is a queue whose engine does not answer.
type away struct{ jobqueue.Queue }

func (away) Enqueue(context.Context, jobqueue.Job) (jobqueue.Receipt, error) {
	return jobqueue.Receipt{}, jobqueue.ErrUnavailable
}
