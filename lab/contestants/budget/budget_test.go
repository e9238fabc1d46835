package main

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/spillway-go/spillway/internal/await"
	plan "github.com/spillway-go/spillway/lab/budget"
	"github.com/spillway-go/spillway/lab/contestant"
)

func TestMain(m *testing.M) {
	if code, ok := contestant.Main(roles); ok {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// A replica of each contestant is admitted, is refused what is too much, and can be ended.
func TestEveryContestantAdmitsAndRefuses(t *testing.T) {
	// The lease is long for a slow machine; one whose answer was lost is over within the limit.
	in := plan.Replica{Slots: 2, Rate: 1_000_000, Lease: await.Limit / 3, Referee: filepath.Join(t.TempDir(), "referee")}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	e, err := contestant.Start(ctx, contestant.Spec{Role: plan.RoleEngine, Input: in}, &in.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{plan.Leases, plan.Closed, plan.Each, plan.Alone} {
		in.Contestant = name
		var g *gate
		await.True(t, name+" is open", func() bool {
			var err error
			g, err = open(t.Context(), in)
			var slow net.Error
			if late := errors.Is(err, nats.ErrTimeout) || errors.As(err, &slow) && slow.Timeout(); err != nil && !late {
				t.Fatal(name, err)
			}
			return err == nil
		})
		var ends []func()
		await.True(t, name+" admits two", func() bool {
			if end, err := g.admit(t.Context()); err == nil { // the rate begins with nothing
				ends = append(ends, end)
			}
			return len(ends) == 2
		})
		if _, err := g.admit(t.Context()); len(ends) != 2 || err == nil {
			t.Errorf("%s: %d of 2 were admitted, and then %v", name, len(ends), err)
		}
		for _, end := range ends {
			end()
		}
		g.close()
	}
	if _, err := e.Stop(t.Context(), nil); err != nil {
		t.Error(err)
	}
}
