package limiter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
)

// listening is a law that records the class of work.
type listening struct {
	limit.Law
	admitted, ended []uint8
	forgotten       int
}

func (l *listening) Admit(_ time.Duration, load limit.Load) {
	l.admitted = append(l.admitted, load.Class)
}
func (l *listening) Observe(s limit.Sample, _ limit.Load) { l.ended = append(l.ended, s.Class) }
func (l *listening) Forget(uint8)                         { l.forgotten++ }

func TestTheKindIsToldByTheRequestOrTheContext(t *testing.T) {
	law := &listening{Law: limit.NewFixed(1)}
	l := configured(t, Config{Law: law})
	of := func(ctx context.Context, r Request) uint8 {
		_ = l.do(ctx, r, nothing)
		if n := len(law.ended); law.ended[n-1] != law.admitted[n-1] {
			t.Errorf("started as %v, ended as %v", law.admitted, law.ended)
		}
		return law.ended[len(law.ended)-1]
	}
	ctx := t.Context()
	a, b, none := of(ctx, Request{Kind: "a"}), of(ctx, Request{Kind: "b"}), of(ctx, Request{})
	if a == b || b == none || a == none {
		t.Fatalf("a is of class %d, b %d, none %d", a, b, none)
	}
	inA := spillway.WithKind(ctx, "a")
	inPriority := spillway.WithCost(spillway.WithPriority(inA, spillway.High), 1)
	high := of(ctx, Request{Kind: "a", Priority: spillway.High})
	for name, c := range map[string][2]uint8{
		"the context says a": {of(inA, Request{}), a},
		"the context says a, the request its cost and priority": {of(inA, Request{Cost: 1, Priority: spillway.High}), high},
		"the context says a, the request b":                     {of(inA, Request{Kind: "b"}), b},
		"an inner context says nothing":                         {of(spillway.WithKind(inA, ""), Request{}), none},
		"an inner context says the priority":                    {of(inPriority, Request{}), high},
	} {
		if c[0] != c[1] {
			t.Errorf("%s: class %d, want %d", name, c[0], c[1])
		}
	}
	if high == a {
		t.Error("kinds of two priorities are one")
	}
	atRest(t, l)
}

// Callers may use any number of names for kinds.
func TestManyKindsCostALimiterNothing(t *testing.T) {
	l := configured(t, Config{Law: limit.NewFixed(1), QueueSize: -1})
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	const many = 30_000 // package places tests a million, and that no busy kind loses its place
	before := int64(0)
	for i := range many {
		if i == 10_000 {
			before = heap()
		}
		take(t, l, Request{Kind: fmt.Sprint("made up ", i)}).Done(nil)
	}
	if grown := heap() - before; grown > 64<<10 {
		t.Errorf("%d names cost %d bytes", many, grown)
	}
	atRest(t, l)
}

func TestEveryEndAndRefusalIsCountedForItsKind(t *testing.T) {
	l := configured(t, Config{Law: limit.NewFixed(1), QueueSize: -1})
	ends := []error{nil, nil, errors.New("failed"), context.DeadlineExceeded, context.Canceled, &spillway.Rejection{Reason: spillway.ReasonQueueFull}}
	for _, kind := range []string{"", "a", "b"} {
		ctx := spillway.WithKind(t.Context(), kind)
		for _, err := range ends {
			p := take(t, l, Request{Kind: kind})
			if s := l.Stats(); s.OldestKind != kind || s.ByKind[kind].InFlight != 1 {
				t.Errorf("%q runs, and the oldest is of kind %q: %+v", kind, s.OldestKind, s.ByKind)
			}
			for range 3 { // the second and third are repeated without the lock
				if _, err := l.Acquire(ctx); reason(err) != spillway.ReasonQueueFull {
					t.Errorf("%v", err)
				}
			}
			p.Done(err)
		}
		take(t, l, Request{Kind: kind}).Release()
	}
	want := map[limit.Outcome]uint64{limit.Success: 2, limit.Failed: 1, limit.Deadline: 1, limit.Canceled: 1, limit.Overload: 1, limit.Unknown: 1}
	s := l.Stats()
	for _, kind := range []string{"", "a", "b"} {
		if k := s.ByKind[kind]; !maps.Equal(k.Ended, want) || k.Rejected != 18 || k.Service.Count() != 6 {
			t.Errorf("%q: %+v", kind, k)
		}
	}
	if s.Ended[limit.Success] != 6 || s.Service.Count() != 18 || len(s.ByKind) != 3 {
		t.Errorf("%+v", s)
	}
	atRest(t, l)
}

// Names of kinds label metrics, and callers may make up any number of them.
func TestTheKindsThatAreReportedAreBounded(t *testing.T) {
	l := configured(t, Config{Law: limit.NewFixed(1)})
	for i := range 5000 {
		take(t, l, Request{Kind: strconv.Itoa(i % 500)}).Done(nil)
	}
	if s := l.Stats(); len(s.ByKind) > 33 || s.ByKind[""].Ended[limit.Success] == 0 {
		t.Errorf("%d kinds", len(s.ByKind))
	}
	atRest(t, l)
}
