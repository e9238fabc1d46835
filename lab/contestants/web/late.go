package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/gin-gonic/gin"

	"github.com/spillway-go/spillway/lab/contestants/web/specimen"
	"github.com/spillway-go/spillway/lab/routes"
	"github.com/spillway-go/spillway/route"
	"github.com/spillway-go/spillway/routegin"
)

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
	if name == routes.Spillway {
		mux := route.NewMux(route.Config{})
		return mux, mux.Add(route.New("GET", getPath, func(ctx context.Context, q spillwayGet) (patient, error) {
			w.keep(ctx)
			return found(q.ID), nil
		}))
	}
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	if name == routes.GinTyped {
		return engine, routegin.NewAPI(route.Config{}).Register(engine, routegin.New("GET", getGin, func(c *routegin.Context, q spillwayGet) (patient, error) {
			w.keep(c)
			return found(q.ID), nil
		}))
	}
	specimen.New(http.MethodGet, getGin, func(c *specimen.Context, q publishedGet) (patient, error) {
		w.keep(c)
		return found(q.ID), nil
	}).AddTo(specimen.NewLayer(engine, specimen.Build{Pooled: name == routes.Pooled}))
	return engine, nil
}

// lookLate sends requests one after the other, while goroutines of earlier ones still
// read their contexts.
func lookLate(ctx context.Context, j routes.LateJob) (routes.Seen, error) {
	w := &watcher{}
	h, err := w.handler(j.Name)
	if err != nil {
		return routes.Seen{}, err
	}
	one := newReused(h, requests[routes.Get])
	plain := one.template
	for i := range j.Requests {
		if ctx.Err() != nil {
			return routes.Seen{}, ctx.Err()
		}
		w.returned = make(chan struct{})
		one.template = *plain.WithContext(context.WithValue(context.Background(), number{}, strconv.Itoa(i)))
		one.send()
		if one.code != http.StatusOK {
			return routes.Seen{}, fmt.Errorf("%s answered %d: %s", j.Name, one.code, one.written)
		}
		close(w.returned)
	}
	w.looks.Wait()
	out := routes.Seen{Right: int(w.right.Load()), Wrong: int(w.wrong.Load()), Panics: int(w.panics.Load())}
	out.Example, _ = w.example.Load().(string)
	return out, nil
}
