package routes

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/routes/specimen"
	"github.com/spillway-go/spillway/route"
	"github.com/spillway-go/spillway/routegin"
)

// lateRequests is how many contexts are read after their handler has returned.
const lateRequests = 20_000

type lateJob struct {
	Name     string
	Requests int
}

// late is what goroutines read that outlived their handler.
type late struct {
	Right, Wrong, Panics int
	Example              string // of a panic
}

func demos() []experiment.Demo {
	const id, title = "use-after-return", "the goroutine that looks at its request's context after the handler has returned, as database/sql does with rows"
	return []experiment.Demo{{ID: id, Title: title, Expect: 2 * time.Second, Run: func(ctx context.Context) (results.Demo, error) {
		demo := results.Demo{ID: id, Title: title}
		for _, name := range []string{Pooled, Fresh, Spillway, GinTyped} {
			if name == Pooled && raceEnabled {
				continue // the detector would stop the program at the fault
			}
			var got late
			if _, err := contestant.Run(ctx, contestant.Spec{Role: roleLate, Input: lateJob{name, lateRequests}}, &got); err != nil {
				return demo, err
			}
			demo.Outcome += fmt.Sprintf("%s: %d of %d saw another request's value, %d panicked. ", name, got.Wrong, lateRequests, got.Panics)
			demo.Counts = append(demo.Counts,
				results.NamedCount{Name: "another request's value, " + name, N: float64(got.Wrong)},
				results.NamedCount{Name: "panics, " + name, N: float64(got.Panics)})
		}
		demo.Outcome += "All contexts but the pooled one belong to one request only; Spillway's routes pool what no handler sees."
		return demo, nil
	}}}
}

// number is the key of the value that each request's context carries.
type number struct{}

// watcher reads contexts after their handlers have returned.
type watcher struct {
	returned             chan struct{} // closed when the handler of now has
	looks                sync.WaitGroup
	right, wrong, panics atomic.Int64
	example              atomic.Value
}

// keep does what a handler does that starts a goroutine with its context and does not
// wait for it.
func (w *watcher) keep(ctx context.Context) {
	own, returned := ctx.Value(number{}), w.returned
	w.looks.Go(func() {
		<-returned
		defer func() {
			if v := recover(); v != nil {
				w.panics.Add(1)
				w.example.Store(fmt.Sprint(v))
			}
		}()
		if ctx.Value(number{}) == own {
			w.right.Add(1)
		} else {
			w.wrong.Add(1)
		}
	})
}

func (w *watcher) handler(name string) (http.Handler, error) {
	if name == Spillway {
		mux := route.NewMux(route.Config{})
		return mux, mux.Add(route.New("GET", getPath, func(ctx context.Context, q spillwayGet) (patient, error) {
			w.keep(ctx)
			return found(q.ID), nil
		}))
	}
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	if name == GinTyped {
		return engine, routegin.NewAPI(route.Config{}).Register(engine, routegin.New("GET", getGin, func(c *routegin.Context, q spillwayGet) (patient, error) {
			w.keep(c)
			return found(q.ID), nil
		}))
	}
	specimen.New(http.MethodGet, getGin, func(c *specimen.Context, q publishedGet) (patient, error) {
		w.keep(c)
		return found(q.ID), nil
	}).AddTo(specimen.NewLayer(engine, specimen.Build{Pooled: name == Pooled}))
	return engine, nil
}

// lookLate sends requests one after the other, while goroutines of earlier ones still
// read their contexts.
func lookLate(ctx context.Context, j lateJob) (late, error) {
	w := &watcher{}
	h, err := w.handler(j.Name)
	if err != nil {
		return late{}, err
	}
	one := newReused(h, requests[Get])
	plain := one.template
	for i := range j.Requests {
		if ctx.Err() != nil {
			return late{}, ctx.Err()
		}
		w.returned = make(chan struct{})
		one.template = *plain.WithContext(context.WithValue(context.Background(), number{}, strconv.Itoa(i)))
		one.send()
		if one.code != http.StatusOK {
			return late{}, fmt.Errorf("%s answered %d: %s", j.Name, one.code, one.written)
		}
		close(w.returned)
	}
	w.looks.Wait()
	out := late{int(w.right.Load()), int(w.wrong.Load()), int(w.panics.Load()), ""}
	out.Example, _ = w.example.Load().(string)
	return out, nil
}
