package main

import (
	"context"
	"errors"
	"net/http"

	"github.com/spillway-go/spillway/lab/contestants/web/specimen"
	"github.com/spillway-go/spillway/route"
	"github.com/spillway-go/spillway/routegin"
)

// The contestants whose handlers are functions of a request that is bound and checked.

// typedCreate and typedGet are the requests of our routes, which read the tags path and
// validate, and of the published layer, which reads uri and binding.
type typedCreate struct {
	Ward   string   `path:"ward" uri:"ward" validate:"max=20" binding:"max=20"`
	Notify bool     `query:"notify"`
	Name   string   `json:"name" form:"name" validate:"required,min=2,max=80" binding:"required,min=2,max=80"`
	Email  string   `json:"email" form:"email" validate:"required,format=email" binding:"required,email"`
	Gender string   `json:"gender" form:"gender" validate:"required,enum=female|male|other|unknown" binding:"required,oneof=female male other unknown"`
	Age    int      `json:"age" form:"age" validate:"required,min=1,max=150" binding:"required,min=1,max=150"`
	Phone  string   `json:"phone" form:"phone" validate:"pattern=^[+0-9 ]{5,20}$" binding:"omitempty,phone"`
	Note   string   `json:"note" form:"note" validate:"max=1000" binding:"max=1000"`
	Tags   []string `json:"tags" form:"tags" validate:"max=8" binding:"max=8"`
}

type typedGet struct {
	ID string `path:"id" uri:"id" validate:"len=7" binding:"len=7"`
}

func (q *typedCreate) created() patient {
	return patient{newID, q.Ward, q.Notify, q.Name, q.Email, q.Gender, q.Age, q.Phone, q.Note, q.Tags}
}

func startSpillway() (http.Handler, error) {
	mux := route.NewMux(route.Config{Untimed: true, Limits: route.Limits{Body: maxBody}})
	return mux, mux.Add(
		route.New("POST", createPath, func(_ context.Context, q typedCreate) (patient, error) { return q.created(), nil }).Status(http.StatusCreated),
		route.New("GET", getPath, func(_ context.Context, q typedGet) (patient, error) { return found(q.ID), nil }),
	)
}

// startGinTyped is package route on a gin engine, whose handlers are given a
// context of their own that is never pooled.
func startGinTyped() (http.Handler, error) {
	engine, err := newGin()
	api := routegin.NewAPI(route.Config{Untimed: true, Limits: route.Limits{Body: maxBody}})
	return engine, errors.Join(err, api.Register(engine,
		routegin.New("POST", createGin, func(_ *routegin.Context, q typedCreate) (patient, error) { return q.created(), nil }).Status(http.StatusCreated),
		routegin.New("GET", getGin, func(_ *routegin.Context, q typedGet) (patient, error) { return found(q.ID), nil })))
}

func startSpecimen(b specimen.Build) func() (http.Handler, error) {
	return func() (http.Handler, error) {
		engine, err := newGin()
		l := specimen.NewLayer(engine, b)
		specimen.Add(l, "POST", createGin, http.StatusCreated, func(_ *specimen.Context, q typedCreate) (patient, error) { return q.created(), nil })
		specimen.Add(l, "GET", getGin, http.StatusOK, func(_ *specimen.Context, q typedGet) (patient, error) { return found(q.ID), nil })
		return engine, err
	}
}
