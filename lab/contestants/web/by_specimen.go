package main

import (
	"net/http"

	"github.com/spillway-go/spillway/lab/contestants/web/specimen"
)

// publishedCreate binds everything, with form tags that work.
type publishedCreate struct {
	Ward   string `json:"-" uri:"ward" binding:"max=20"`
	Notify bool   `json:"-" query:"notify"`
	newPatient
}

// publishedUntagged is a request type as published: without form tags. gin then
// looks for fields by their Go names, finds none, and the answer is 400.
type publishedUntagged struct {
	Ward   string   `json:"-" uri:"ward" binding:"max=20"`
	Notify bool     `json:"-" query:"notify"`
	Name   string   `json:"name" binding:"required,min=2,max=80"`
	Email  string   `json:"email" binding:"required,email"`
	Gender string   `json:"gender" binding:"required,oneof=female male other unknown"`
	Age    int      `json:"age" binding:"required,min=1,max=150"`
	Phone  string   `json:"phone" binding:"omitempty,phone"`
	Note   string   `json:"note" binding:"max=1000"`
	Tags   []string `json:"tags" binding:"max=8"`
}

type publishedGet struct {
	ID string `uri:"id" binding:"len=7"`
}

func startSpecimen(b specimen.Build) func() (handlers, error) {
	return func() (handlers, error) {
		engine, err := newGin()
		if err != nil {
			return handlers{}, err
		}
		l := specimen.NewLayer(engine, b)
		specimen.New(http.MethodPost, createGin, func(_ *specimen.Context, q publishedCreate) (patient, error) {
			return created(q.Ward, q.Notify, &q.newPatient), nil
		}).Name("create").Desc("Creates a patient.").Status(http.StatusCreated).AddTo(l)
		specimen.New(http.MethodPost, "/untagged"+createGin, func(_ *specimen.Context, q publishedUntagged) (patient, error) {
			return patient{newID, q.Ward, q.Notify, q.Name, q.Email, q.Gender, q.Age, q.Phone, q.Note, q.Tags}, nil
		}).Name("untagged").Status(http.StatusCreated).AddTo(l)
		specimen.New(http.MethodGet, getGin, func(_ *specimen.Context, q publishedGet) (patient, error) {
			return found(q.ID), nil
		}).Name("get").AddTo(l)
		return handlers{http: engine}, nil
	}
}
