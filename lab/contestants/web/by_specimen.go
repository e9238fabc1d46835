package main

import (
	"net/http"

	"github.com/spillway-go/spillway/lab/contestants/web/specimen"
)

// untaggedCreate is a request type as published: without form tags. gin then looks for
// fields by their Go names, finds none, and the answer is 400.
type untaggedCreate struct {
	Ward   string   `uri:"ward" binding:"max=20"`
	Notify bool     `query:"notify"`
	Name   string   `json:"name" binding:"required,min=2,max=80"`
	Email  string   `json:"email" binding:"required,email"`
	Gender string   `json:"gender" binding:"required,oneof=female male other unknown"`
	Age    int      `json:"age" binding:"required,min=1,max=150"`
	Phone  string   `json:"phone" binding:"omitempty,phone"`
	Note   string   `json:"note" binding:"max=1000"`
	Tags   []string `json:"tags" binding:"max=8"`
}

func startSpecimen(b specimen.Build) func() (handlers, error) {
	return func() (handlers, error) {
		engine, err := newGin()
		l := specimen.NewLayer(engine, b)
		specimen.New(http.MethodPost, createGin, func(_ *specimen.Context, q typedCreate) (patient, error) {
			return q.created(), nil
		}).Name("create").Desc("Creates a patient.").Status(http.StatusCreated).AddTo(l)
		specimen.New(http.MethodPost, "/untagged"+createGin, func(_ *specimen.Context, q untaggedCreate) (patient, error) {
			return (*typedCreate)(&q).created(), nil
		}).Name("untagged").Status(http.StatusCreated).AddTo(l)
		specimen.New(http.MethodGet, getGin, func(_ *specimen.Context, q typedGet) (patient, error) {
			return found(q.ID), nil
		}).Name("get").AddTo(l)
		return handlers{http: engine}, err
	}
}
