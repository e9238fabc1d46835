package export

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"iter"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/access"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/simulated"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/memory"
)

const people = 230

// lineOf is a resource as these tests have it: its id is enough.
type lineOf struct {
	Kind access.Resource
	ID   string
}

func resources(t access.Resource, p *patientapi.Patient, observations []patientapi.Observation) iter.Seq[any] {
	return func(yield func(any) bool) {
		n := 1
		switch t {
		case access.Observations:
			n = len(observations)
		case access.MedicationRequests:
			n = len(p.Medications)
		}
		for i := range n {
			if !yield(lineOf{t, p.ID + "-" + string(rune('a'+i))}) {
				return
			}
		}
	}
}

// asked is a store with before called at each question, counted from 1.
type asked struct {
	patientapi.Store
	base  patientapi.Store
	calls atomic.Int64
}

func newStore(t *testing.T, before func(ctx context.Context, call int64) error) *asked {
	t.Helper()
	base, err := simulated.New(people, 3)
	require.NoError(t, err)
	s := &asked{base: base}
	s.Store = patientapi.Around(base, func(ctx context.Context, _ patientapi.Question, ask func(context.Context) error) error {
		if call := s.calls.Add(1); before != nil {
			if err := before(ctx, call); err != nil {
				return err
			}
		}
		return ask(ctx)
	})
	return s
}

func newQueue(t *testing.T, cfg memory.Config) jobqueue.Queue {
	t.Helper()
	cfg.Policy = Policy()
	q, err := memory.Open(cfg)
	require.NoError(t, err)
	return q
}

func newExports(t *testing.T, q jobqueue.Queue, store patientapi.Store, dir string) *Exports {
	t.Helper()
	runner, err := patterns.New(patterns.Adaptive, patterns.Config{Workers: 1})
	require.NoError(t, err)
	e, err := New(Config{Queue: q, Store: store, Runner: runner, Resources: resources, Dir: dir, PartSize: 50})
	require.NoError(t, err)
	return e
}

// run runs e until the function it returns is called.
func run(e *Exports) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = e.Run(ctx) }()
	return func() { cancel(); <-ended }
}

func begin(t *testing.T, e *Exports, r Request) string {
	t.Helper()
	ticket := access.NewTicket("somebody")
	if r.Types == nil {
		r.Types = Types
	}
	r.Started = time.Now().UTC()
	require.NoError(t, e.Start(t.Context(), ticket, r))
	return ticket
}

func status(t *testing.T, e *Exports, ticket string) Status {
	t.Helper()
	s, err := e.Status(ticket)
	require.NoError(t, err)
	return s
}

// whole reports an export that does not have every resource of the store exactly once.
func whole(t *testing.T, e *Exports, ticket string, store *asked) {
	t.Helper()
	s := status(t, e, ticket)
	if s.State != Complete || s.Patients != people {
		t.Fatalf("%s, %d patients; %s", s.State, s.Patients, s.Reason)
	}
	want := map[lineOf]int{}
	var page patientapi.Page
	require.NoError(t, store.base.Search(t.Context(), patientapi.PatientSearch{}, &page))
	for i := range page.Patients {
		p := &page.Patients[i]
		observations, err := store.base.Observations(t.Context(), p.ID)
		require.NoError(t, err)
		for _, kind := range s.Types {
			for r := range resources(kind, p, observations) {
				want[r.(lineOf)]++
			}
		}
	}
	for _, f := range s.Files {
		c, err := e.Open(ticket, f.Name)
		require.NoError(t, err)
		text, err := io.ReadAll(c)
		if err != nil || len(c.Patients) == 0 || len(c.Patients) > e.cfg.PartSize {
			t.Errorf("%s: %d patients, %v", f.Name, len(c.Patients), err)
		}
		_ = c.Close()
		n := 0
		for line := range bytes.Lines(text) {
			var r lineOf
			if err := json.Unmarshal(line, &r); err != nil || r.Kind != f.Type {
				t.Fatalf("%s: %v: %s", f.Name, err, line)
			}
			want[r]--
			n++
		}
		if n != f.Count {
			t.Errorf("%s: %d lines, want %d", f.Name, n, f.Count)
		}
	}
	for r, n := range want {
		if n != 0 {
			t.Errorf("%v: %d too few", r, n)
		}
	}
	if left, _ := filepath.Glob(e.disk.path(ticket, unfinished+"*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
