package route

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/route/internal/shape"
	"github.com/spillway-go/spillway/route/internal/wire"
)

// One answer lists at most 32 faults, and further faults must not even be formatted. A megabyte of
// wrong elements has half a million faults.
func TestFaultsThatAreNotListedCostNothingAlloc(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	p := must(shape.Compile(reflect.TypeFor[struct {
		List []string `body:"json"`
	}](), "/", ownTypes))
	b := &wire.Binder{Plan: p, Limits: wire.Limits{Memory: 1 << 20, Depth: defaults.Depth}}
	allocs := func(n int) float64 {
		var s wire.Scratch
		body := "[" + strings.Repeat("1,", n) + "1]"
		return testing.AllocsPerRun(5, func() {
			s.Clear()
			s.Body = append(s.Body, body...)
			b.JSON(&s, reflect.New(p.Type).Elem())
		})
	}
	if few, many := allocs(100), allocs(10_000); many > few+40 {
		t.Errorf("%v allocations for 100 faults, %v for 10,000", few, many)
	}
}

func TestFaultsOfAHandlerAreListedUpToTheLimitToo(t *testing.T) {
	m := NewMux(Config{})
	check(t, m.Add(New("GET", "/", func(context.Context, Empty) (Empty, error) {
		return Empty{}, &InvalidError{Faults: make([]Fault, 1000)}
	})))
	w := do(m, "GET", "/", "", "")
	if p := problemOf(t, w.Header().Get("Content-Type"), w.Body.String()); len(p.Errors) != wire.MaxFaults {
		t.Errorf("%d faults", len(p.Errors))
	}
}
