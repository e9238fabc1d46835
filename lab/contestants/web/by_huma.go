package main

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

type humaCreate struct {
	Ward   string `path:"ward" maxLength:"20"`
	Notify bool   `query:"notify"`
	Body   struct {
		Name   string   `json:"name" minLength:"2" maxLength:"80"`
		Email  string   `json:"email" format:"email"`
		Gender string   `json:"gender" enum:"female,male,other,unknown"`
		Age    int      `json:"age" minimum:"1" maximum:"150"`
		Phone  string   `json:"phone,omitempty" pattern:"^[+0-9 ]{5,20}$"`
		Note   string   `json:"note,omitempty" maxLength:"1000"`
		Tags   []string `json:"tags,omitempty" maxItems:"8"`
	}
}

type humaGet struct {
	ID string `path:"id" minLength:"7" maxLength:"7"`
}

type humaAnswer struct{ Body patient }

func startHuma() (handlers, error) {
	mux := http.NewServeMux()
	config := huma.DefaultConfig("patients", "1")
	config.CreateHooks = nil // they add a link to the schema to every answer
	api := humago.New(mux, config)
	huma.Register(api, huma.Operation{
		OperationID: "create", Method: http.MethodPost, Path: createPath, DefaultStatus: http.StatusCreated, MaxBodyBytes: maxBody,
	}, func(_ context.Context, q *humaCreate) (*humaAnswer, error) {
		b := &q.Body
		return &humaAnswer{patient{newID, q.Ward, q.Notify, b.Name, b.Email, b.Gender, b.Age, b.Phone, b.Note, b.Tags}}, nil
	})
	huma.Register(api, huma.Operation{
		OperationID: "get", Method: http.MethodGet, Path: getPath,
	}, func(_ context.Context, q *humaGet) (*humaAnswer, error) { return &humaAnswer{found(q.ID)}, nil })
	return handlers{http: mux}, nil
}
