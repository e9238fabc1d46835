package main

import (
	"context"
	"net/http"

	"github.com/spillway-go/spillway/route"
)

type spillwayCreate struct {
	Ward   string   `path:"ward" validate:"max=20"`
	Notify bool     `query:"notify"`
	Name   string   `json:"name" form:"name" validate:"required,min=2,max=80"`
	Email  string   `json:"email" form:"email" validate:"required,format=email"`
	Gender string   `json:"gender" form:"gender" validate:"required,enum=female|male|other|unknown"`
	Age    int      `json:"age" form:"age" validate:"required,min=1,max=150"`
	Phone  string   `json:"phone" form:"phone" validate:"pattern=^[+0-9 ]{5,20}$"`
	Note   string   `json:"note" form:"note" validate:"max=1000"`
	Tags   []string `json:"tags" form:"tags" validate:"max=8"`
}

type spillwayGet struct {
	ID string `path:"id" validate:"len=7"`
}

func (q *spillwayCreate) created() patient {
	return patient{newID, q.Ward, q.Notify, q.Name, q.Email, q.Gender, q.Age, q.Phone, q.Note, q.Tags}
}

func startSpillway(untimed bool) func() (handlers, error) {
	return func() (handlers, error) {
		mux := route.NewMux(route.Config{Untimed: untimed, Limits: route.Limits{Body: maxBody}})
		return handlers{http: mux}, mux.Add(
			route.New("POST", createPath, func(_ context.Context, q spillwayCreate) (patient, error) { return q.created(), nil }).Status(http.StatusCreated),
			route.New("GET", getPath, func(_ context.Context, q spillwayGet) (patient, error) { return found(q.ID), nil }),
		)
	}
}
