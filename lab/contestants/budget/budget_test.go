package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

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
	in := plan.Replica{Slots: 2, Rate: 1_000_000, Lease: time.Second, Referee: filepath.Join(t.TempDir(), "referee")}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	e, err := contestant.Start(ctx, contestant.Spec{Role: plan.RoleEngine, Input: in}, &in.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{plan.Leases, plan.Closed, plan.Each, plan.Alone} {
		in.Contestant = name
		g, err := open(t.Context(), in)
		if err != nil {
			t.Fatal(name, err)
		}
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
