package agents

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/load"
	"github.com/spillway-go/spillway/loadgen"
)

func TestTooFewAgentsAreAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, loadgen.Config{Open: loadgen.Constant(1000, time.Hour)})
		for _, end := range w.ends {
			defer end()
		}
		if _, err := Coordinate(t.Context(), w.bus, Config{Agents: 3}); !errors.Is(err, ErrNobody) || !strings.Contains(err.Error(), "2 of 3 agents are there: start agents") {
			t.Error(err)
		}
		if _, err := Coordinate(t.Context(), newMemory(t), Config{}); !errors.Is(err, ErrNobody) || !strings.Contains(err.Error(), "no agent answers") {
			t.Error(err)
		}
	})
}

func TestAnAgentThatIsBusyTakesNoOtherLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, loadgen.Config{Open: loadgen.Constant(1000, time.Minute)})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			time.Sleep(10 * time.Second)
			_, err := Coordinate(ctx, w.bus, Config{Agents: 1})
			if !errors.Is(err, ErrNobody) || !strings.Contains(err.Error(), "2 are busy") {
				t.Error(err)
			}
			cancel()
		}()
		if r, err := w.coordinate(ctx, w.bus); err != nil || r.Invalid != "" {
			t.Errorf("%v, %+v", err, r)
		}
	})
}

func TestAnAgentThatCannotSendSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, loadgen.Config{Open: loadgen.Constant(1000, time.Hour)})
		w.refused = errors.New("no such table")
		_, err := w.coordinate(t.Context(), w.bus)
		refusal, ok := errors.AsType[*Refusal](err)
		if !ok || refusal.Why != "no such table" {
			t.Fatal(err)
		}
		// It was not this agent's one load: the next one is welcome.
		w.refused = nil
		w.run.Open = loadgen.Constant(10, time.Second)
		if r, err := w.coordinate(t.Context(), w.bus); err != nil || r.Result.Offered != 10 {
			t.Errorf("%v, %+v", err, r)
		}
		w.agents.Wait()
	})
}

// An agent is as good for the next load as for the first.
func TestAgentsTakeOneLoadAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := newMemory(t)
		ctx, end := context.WithCancel(t.Context())
		served := make(chan error)
		target := loadgen.TargetFunc(func(context.Context, uint64) loadgen.Outcome { return loadgen.OK })
		go func() {
			served <- Serve(ctx, bus, AgentConfig{Name: "patient", Plan: func([]byte) (*load.Plan, error) {
				return &load.Plan{Run: loadgen.Config{Target: target, Open: loadgen.Constant(10, time.Second)}}, nil
			}})
		}()
		text := make([]byte, 3*partSize+1)
		for range 3 {
			r, err := Coordinate(t.Context(), bus, Config{Load: text, Interval: time.Second})
			if err != nil || r.Result.Offered != 10 || r.Invalid != "" {
				t.Errorf("%v, %+v", err, r)
			}
		}
		end()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

func TestOtherVersionsAreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := newMemory(t)
		_, err := bus.Subscribe(callSubject, func(data []byte, _ func([]byte)) {
			if m, err := decode(data); err == nil {
				_ = bus.Publish(runSubject(m.Call.Run), []byte(`{"v":2,"hello":{"id":"x"}}`))
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Coordinate(t.Context(), bus, Config{}); !errors.Is(err, ErrNobody) || !strings.Contains(err.Error(), "version 2") {
			t.Error(err)
		}
	})
}
