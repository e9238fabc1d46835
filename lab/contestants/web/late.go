package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/gin-gonic/gin"

	"github.com/spillway-go/spillway/lab/contestants/web/specimen"
	"github.com/spillway-go/spillway/lab/routes"
	"github.com/spillway-go/spillway/route"
	"github.com/spillway-go/spillway/routegin"
)

// number is the key of the value that each request's context carries.
type number struct{}

// lookLate sends requests one after the other, while goroutines of earlier ones still
// read their contexts.
func lookLate(ctx context.Context, j routes.LateJob) (out routes.Seen, err error) {
	var returned chan struct{} // closed when the handler has
	var looks sync.WaitGroup
	var mu sync.Mutex
	// keep does what a handler does that starts a goroutine with its context and does not
	// wait for it.
	h, err := lateHandler(j.Name, func(ctx context.Context) {
		own, returned := ctx.Value(number{}), returned
		looks.Go(func() {
			<-returned
			right := false
			defer func() {
				v := recover()
				mu.Lock()
				defer mu.Unlock()
				switch {
				case v != nil:
					out.Panics++
					out.Example = fmt.Sprint(v)
				case right:
					out.Right++
				default:
					out.Wrong++
				}
			}()
			right = ctx.Value(number{}) == own
		})
	})
	if err != nil {
		return out, err
	}
	one := newReused(h, requests[routes.Get])
	plain := one.template
	for i := 0; i < j.Requests && ctx.Err() == nil; i++ {
		returned = make(chan struct{})
		one.template = *plain.WithContext(context.WithValue(context.Background(), number{}, i))
		status, body := one.send()
		close(returned)
		if status != http.StatusOK {
			return routes.Seen{}, fmt.Errorf("%s answered %d: %s", j.Name, status, body)
		}
	}
	looks.Wait()
	return out, ctx.Err()
}

// lateHandler is a contestant whose handler calls keep with its context.
func lateHandler(name string, keep func(context.Context)) (http.Handler, error) {
	gin.SetMode(gin.ReleaseMode)
	mux, engine := route.NewMux(route.Config{}), gin.New()
	switch name {
	case routes.Spillway:
		return mux, mux.Add(route.New("GET", getPath, func(ctx context.Context, q spillwayGet) (patient, error) {
			keep(ctx)
			return found(q.ID), nil
		}))
	case routes.GinTyped:
		return engine, routegin.NewAPI(route.Config{}).Register(engine, routegin.New("GET", getGin, func(c *routegin.Context, q spillwayGet) (patient, error) {
			keep(c)
			return found(q.ID), nil
		}))
	}
	specimen.New("GET", getGin, func(c *specimen.Context, q publishedGet) (patient, error) {
		keep(c)
		return found(q.ID), nil
	}).AddTo(specimen.NewLayer(engine, specimen.Build{Pooled: name == routes.Pooled}))
	return engine, nil
}
