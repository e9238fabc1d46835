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
// read their contexts. Each does what a handler does that starts a goroutine with its
// context and does not wait for it.
func lookLate(ctx context.Context, j routes.LateJob) (out routes.Seen, err error) {
	var now int
	var returned chan struct{} // closed when the handler of now has
	var looks sync.WaitGroup
	saw := make([]*int, j.Requests)
	h, err := lateHandler(j.Name, func(ctx context.Context) {
		own, returned := now, returned
		looks.Go(func() {
			<-returned
			saw[own] = &out.Panics // unless it sees something
			defer func() { _ = recover() }()
			if ctx.Value(number{}) == own {
				saw[own] = &out.Right
			} else {
				saw[own] = &out.Wrong
			}
		})
	})
	if err != nil {
		return out, err
	}
	one := newReused(h, requests[routes.Get])
	plain := one.template
	for now = 0; now < j.Requests && ctx.Err() == nil; now++ {
		returned = make(chan struct{})
		one.template = *plain.WithContext(context.WithValue(context.Background(), number{}, now))
		status, body := one.send()
		close(returned)
		if status != http.StatusOK {
			return out, fmt.Errorf("%s answered %d: %s", j.Name, status, body)
		}
	}
	looks.Wait()
	for _, count := range saw[:now] {
		*count++
	}
	return out, ctx.Err()
}

// lateHandler is a contestant whose handler calls keep with its context.
func lateHandler(name string, keep func(context.Context)) (http.Handler, error) {
	gin.SetMode(gin.ReleaseMode)
	mux, engine := route.NewMux(route.Config{}), gin.New()
	switch name {
	case routes.Spillway:
		return mux, mux.Add(route.New("GET", getPath, func(ctx context.Context, q typedGet) (patient, error) {
			keep(ctx)
			return found(q.ID), nil
		}))
	case routes.GinTyped:
		return engine, routegin.NewAPI(route.Config{}).Register(engine, routegin.New("GET", getGin, func(c *routegin.Context, q typedGet) (patient, error) {
			keep(c)
			return found(q.ID), nil
		}))
	}
	layer := specimen.NewLayer(engine, specimen.Build{Pooled: name == routes.Pooled})
	specimen.Add(layer, "GET", getGin, http.StatusOK, func(c *specimen.Context, q typedGet) (patient, error) {
		keep(c)
		return found(q.ID), nil
	})
	return engine, nil
}
