package main

import (
	"context"
	"net/http"

	"github.com/spillway-go/spillway/route"
)

// typedCreate and typedGet are the requests of typed routes: ours, which read the tags
// path and validate, and those of the published layer, which read uri and binding.
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

func startSpillway(untimed bool) func() (handlers, error) {
	return func() (handlers, error) {
		mux := route.NewMux(route.Config{Untimed: untimed, Limits: route.Limits{Body: maxBody}})
		return handlers{http: mux}, mux.Add(
			route.New("POST", createPath, func(_ context.Context, q typedCreate) (patient, error) { return q.created(), nil }).Status(http.StatusCreated),
			route.New("GET", getPath, func(_ context.Context, q typedGet) (patient, error) { return found(q.ID), nil }),
		)
	}
}
