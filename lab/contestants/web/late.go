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
func lookLate(ctx context.Context, name string) (map[string]float64, error) {
	const right, wrong, panics = 0, 1, 2
	var counts [3]float64
	var now int
	var returned chan struct{} // closed when the handler of now has
	var looks sync.WaitGroup
	saw := make([]int, routes.LateRequests)
	h, err := lateHandler(name, func(ctx context.Context) {
		own, returned := now, returned
		looks.Go(func() {
			<-returned
			saw[own] = panics // unless it sees something
			defer func() { _ = recover() }()
			if ctx.Value(number{}) == own {
				saw[own] = right
			} else {
				saw[own] = wrong
			}
		})
	})
	if err != nil {
		return nil, err
	}
	one := newHarness(h, requests[routes.Get])
	plain := one.template
	for now = 0; now < len(saw) && ctx.Err() == nil; now++ {
		returned = make(chan struct{})
		one.template = *plain.WithContext(context.WithValue(context.Background(), number{}, now))
		status, body := one.send()
		close(returned)
		if status != http.StatusOK {
			return nil, fmt.Errorf("%s answered %d: %s", name, status, body)
		}
	}
	looks.Wait()
	for _, kind := range saw[:now] {
		counts[kind]++
	}
	return map[string]float64{"right": counts[right], "wrong": counts[wrong], "panics": counts[panics]}, ctx.Err()
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
