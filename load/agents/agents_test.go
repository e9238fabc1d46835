package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/load"
	"github.com/spillway-go/spillway/loadgen"
)

// world is a coordinator and agents in virtual time.
type world struct {
	t       *testing.T
	bus     *memory
	cables  []*cable // of the agents
	ends    []func() // end an agent, as a signal does
	served  []error  // what Serve returned
	agents  sync.WaitGroup
	run     loadgen.Config
	mu      sync.Mutex
	sent    map[uint64]int
	last    time.Time // when a request was sent
	steps   []loadgen.Snapshot
	refused error                                              // by Plan
	clock   func(agent int, since time.Duration) time.Duration // nil: none is wrong
}

func newWorld(t *testing.T, agents int, run loadgen.Config) *world {
	w := &world{t: t, bus: newMemory(t), run: run, sent: map[uint64]int{}}
	if w.run.Interval == 0 {
		w.run.Interval = time.Second
	}
	w.run.Target = target(w)
	for i := range agents {
		time.Sleep(time.Duration(i) * 13 * time.Millisecond) // clocks differ
		ctx, end := context.WithCancel(t.Context())
		c := &cable{Bus: w.bus}
		w.cables, w.ends, w.served = append(w.cables, c), append(w.ends, end), append(w.served, nil)
		w.agents.Go(func() {
			w.served[i] = Serve(ctx, c, AgentConfig{Name: fmt.Sprintf("agent-%d", i), Once: true, Log: func(line string) { t.Log(i, line) },
				since: func(began time.Time) time.Duration {
					if w.clock == nil {
						return time.Since(began)
					}
					return w.clock(i, time.Since(began))
				},
				Plan: func(text []byte) (*load.Plan, error) {
					if string(text) != "the load" && len(text) < partSize {
						t.Errorf("the load is %.100q", text)
					}
					return &load.Plan{Run: w.run}, w.refused
				}})
		})
	}
	synctest.Wait()
	return w
}

// target answers after a time and with an outcome that follow from the request's number.
func target(w *world) loadgen.Target {
	part := func(class string, weight float64) loadgen.Part {
		return loadgen.Part{Class: class, Weight: weight, Target: loadgen.TargetFunc(func(_ context.Context, n uint64) loadgen.Outcome {
			w.mu.Lock()
			w.sent[n]++
			w.last = time.Now()
			w.mu.Unlock()
			x := (n + 1) * 0x9e3779b97f4a7c15
			time.Sleep(time.Duration(x % uint64(50*time.Millisecond)))
			return loadgen.Outcome(x >> 60 % 4)
		})}
	}
	mix, err := loadgen.Mix(3, part("common", 3), part("rare", 1))
	if err != nil {
		panic(err)
	}
	return mix
}

func (w *world) coordinate(ctx context.Context, bus Bus) (*Report, error) {
	r, err := Coordinate(ctx, bus, Config{Load: []byte("the load"), Interval: w.run.Interval, Agents: len(w.ends), Wait: 5 * time.Second,
		Progress: func(s loadgen.Snapshot) { w.steps = append(w.steps, s) }, Log: func(line string) { w.t.Log("coordinator:", line) }})
	w.t.Cleanup(func() {
		for _, end := range w.ends {
			end()
		}
		w.agents.Wait()
	})
	return r, err
}

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Eight agents measure what one process does: every bucket of every histogram, every step
// of the time line and of the live view.
func TestAgentsMeasureWhatOneProcessDoes(t *testing.T) {
	for name, cfg := range map[string]loadgen.Config{
		"open":   {Open: loadgen.Poisson(1000, 3*time.Second, 5), Interval: 100 * time.Millisecond},
		"closed": {Closed: &loadgen.Closed{Clients: 20, Requests: 2007}, Interval: 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				alone := &world{sent: map[uint64]int{}}
				own := cfg
				own.Target, own.Begin = target(alone), time.Now().Add(time.Second)
				own.Progress = func(s loadgen.Snapshot) { alone.steps = append(alone.steps, s) }
				want, err := loadgen.Run(t.Context(), own)
				if err != nil {
					t.Fatal(err)
				}
				for _, n := range []int{1, 8} {
					w := newWorld(t, n, cfg)
					got, err := w.coordinate(t.Context(), w.bus)
					if err != nil || got.Invalid != "" || got.Warnings != nil {
						t.Fatalf("%v, %+v", err, got)
					}
					if a, b := text(t, got.Result), text(t, want); a != b {
						t.Errorf("%d agents:\n%.500s, want\n%.500s", n, a, b)
					}
					if !reflect.DeepEqual(w.sent, alone.sent) {
						t.Errorf("%d agents sent %d different requests, want %d", n, len(w.sent), len(alone.sent))
					}
					// The last step is when the first agent is done, or all of them are.
					common := len(alone.steps) - 2
					if a, b := text(t, w.steps[:common]), text(t, alone.steps[:common]); a != b {
						t.Errorf("%d agents, live:\n%.900s, want\n%.900s", n, a, b)
					}
					if last := w.steps[len(w.steps)-1]; last.Sent != want.Offered || last.InFlight != 0 {
						t.Errorf("%d agents: the live view ends with %+v", n, last)
					}
				}
			})
		})
	}
}

func TestALostAgentIsNoticedAndTheOthersStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, loadgen.Config{Open: loadgen.Constant(1000, time.Hour)})
		var cut time.Time
		go func() {
			time.Sleep(10 * time.Second)
			cut = time.Now()
			w.cables[2].broken.Store(true)
		}()
		r, err := w.coordinate(t.Context(), w.bus)
		if err != nil {
			t.Fatal(err)
		}
		noticed := time.Since(cut)
		if noticed > 2*time.Second {
			t.Errorf("it took %v", noticed)
		}
		if !strings.Contains(r.Invalid, "agent 3 (agent-2) was lost") || r.Agents[2].Result != nil || r.Agents[2].LastSent < 2000 || r.Agents[2].Lost == "" {
			t.Errorf("%+v", r)
		}
		if !r.Result.Partial || r.Result.Offered < 6000 || len(r.Result.Classes) != 2 {
			t.Errorf("partial %v, %d requests", r.Result.Partial, r.Result.Offered)
		}
		time.Sleep(2*time.Second - noticed)
		w.agents.Wait()
		if after := w.last.Sub(cut); after > 2*time.Second {
			t.Errorf("requests were sent until %v after the cut", after)
		}
		if !errors.Is(w.served[2], errLost) || w.served[0] != nil {
			t.Errorf("the lost agent says %v, another one %v", w.served[2], w.served[0])
		}
	})
}

func TestALostCoordinatorEndsTheAgents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3, loadgen.Config{Open: loadgen.Constant(1000, time.Hour)})
		c := &cable{Bus: w.bus}
		var cut time.Time
		go func() {
			time.Sleep(10 * time.Second)
			cut = time.Now()
			c.broken.Store(true)
		}()
		if _, err := w.coordinate(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		w.agents.Wait()
		if after := w.last.Sub(cut); after > 2*time.Second || after < 0 {
			t.Errorf("requests were sent until %v after the cut", after)
		}
		for i, err := range w.served {
			if !errors.Is(err, errLost) {
				t.Errorf("agent %d: %v", i, err)
			}
		}
	})
}

func TestCtrlCLeavesWhatAllAgentsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3, loadgen.Config{Open: loadgen.Constant(1000, time.Hour)})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		r, err := w.coordinate(ctx, w.bus)
		if err != nil || r.Invalid != "" || !r.Result.Partial || r.Result.Aborted > 0 || r.Result.Offered != uint64(len(w.sent)) {
			t.Errorf("%v, %+v", err, r)
		}
		if took := time.Since(began); took > 11*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestAnAgentThatIsToldToEndDeliversAndInvalidates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3, loadgen.Config{Open: loadgen.Constant(1000, time.Hour)})
		go func() {
			time.Sleep(10 * time.Second)
			w.ends[1]()
		}()
		r, err := w.coordinate(t.Context(), w.bus)
		if err != nil || !strings.Contains(r.Invalid, "agent 2 (agent-1) ended before the load did") || r.Agents[1].Result == nil || r.Result.Offered != uint64(len(w.sent)) {
			t.Errorf("%v, %+v", err, r)
		}
	})
}

func TestClocksAreMeasuredAndALateStartIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, loadgen.Config{Open: loadgen.Constant(100, time.Second)})
		// The way there takes 8 ms and back 4: nobody can tell that from 6 and 6.
		w.bus.delay = func(data []byte) time.Duration {
			m, err := decode(data)
			switch {
			case err != nil:
				t.Error(err)
			case m.Ping != nil:
				return 8 * time.Millisecond
			case m.Pong != nil:
				return 4 * time.Millisecond
			case m.Start != nil:
				return time.Second
			}
			return 0
		}
		r, err := w.coordinate(t.Context(), w.bus)
		if err != nil {
			t.Fatal(err)
		}
		apart := r.Agents[0].ClockOffset - r.Agents[1].ClockOffset
		late := r.Agents[0].Late
		if apart != 13*time.Millisecond || r.Agents[0].Uncertainty != 6*time.Millisecond || late != 378*time.Millisecond {
			t.Errorf("clocks are %v apart ± %v, %v late", apart, r.Agents[0].Uncertainty, late)
		}
		if len(r.Warnings) != 4 || !strings.Contains(r.Warnings[0], "378ms too late") || !strings.Contains(r.Warnings[1], "±6ms") {
			t.Errorf("warnings: %q", r.Warnings)
		}
		if lag := time.Duration(r.Result.Lag.Max()); lag != late || r.Result.Offered != 100 || !r.Result.GeneratorBound {
			t.Errorf("%d requests, lag %v", r.Result.Offered, lag)
		}
	})
}
