package main

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/spillway-go/spillway/route"
)

// jsonCreate is typedCreate with a body of the only media type that huma reads.
type jsonCreate struct {
	Ward   string   `path:"ward" validate:"max=20"`
	Notify bool     `query:"notify"`
	Name   string   `json:"name" validate:"required,min=2,max=80"`
	Email  string   `json:"email" validate:"required,format=email"`
	Gender string   `json:"gender" validate:"required,enum=female|male|other|unknown"`
	Age    int      `json:"age" validate:"required,min=1,max=150"`
	Phone  string   `json:"phone" validate:"pattern=^[+0-9 ]{5,20}$"`
	Note   string   `json:"note" validate:"max=1000"`
	Tags   []string `json:"tags" validate:"max=8"`
}

// documents returns the document of package route and that of huma for an API with n pairs of operations:
// one creates a patient and one finds it. If listed is true, huma is told the statuses of failures.
func documents(t *testing.T, n int, listed bool) (ours, humas []byte) {
	mux := route.NewMux(route.Config{})
	config := huma.DefaultConfig("patients", "1")
	config.CreateHooks = nil
	api := humago.New(http.NewServeMux(), config)
	var created, found []int
	if listed {
		created, found = []int{400, 408, 413, 415, 500}, []int{400, 500}
	}
	for i := range n {
		base := fmt.Sprintf("/v%d", i)
		create, get := fmt.Sprint("create", i), fmt.Sprint("get", i)
		if err := mux.Add(
			route.New("POST", base+createPath, func(context.Context, jsonCreate) (patient, error) { return patient{}, nil }).Status(http.StatusCreated).Name(create),
			route.New("GET", base+getPath, func(context.Context, typedGet) (patient, error) { return patient{}, nil }).Name(get),
		); err != nil {
			t.Fatal(err)
		}
		huma.Register(api, huma.Operation{OperationID: create, Method: http.MethodPost, Path: base + createPath, DefaultStatus: http.StatusCreated, Errors: created},
			func(context.Context, *humaCreate) (*humaAnswer, error) { return nil, nil })
		huma.Register(api, huma.Operation{OperationID: get, Method: http.MethodGet, Path: base + getPath, Errors: found},
			func(context.Context, *humaGet) (*humaAnswer, error) { return nil, nil })
	}
	ours, err := mux.OpenAPI(route.Info{Title: "patients", Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	if humas, err = api.OpenAPI().MarshalJSON(); err != nil {
		t.Fatal(err)
	}
	return ours, humas
}

// For failures, huma's document has one word, default, unless the operation lists their statuses. That of
// package route always lists them, with the types of their problems.
func TestTheDocumentIsNotMuchLongerThanHumas(t *testing.T) {
	for _, n := range []int{1, 5, 20} {
		for _, listed := range []bool{true, false} {
			ours, humas := documents(t, n, listed)
			ratio := float64(len(ours)) / float64(len(humas))
			t.Logf("%d operations, failures listed by huma: %v: %d bytes, huma's %d: %.2f", 2*n, listed, len(ours), len(humas), ratio)
			if listed && ratio > 1.2 {
				t.Errorf("%.2f of huma's", ratio)
			}
		}
	}
}
