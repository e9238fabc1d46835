package route_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/spillway-go/spillway/route"
)

type patient struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

var errUnknown = errors.New("unknown patient")

type get struct {
	ID string `path:"id" validate:"pattern=^P[0-9]{6}$"`
}

type create struct {
	Ward string              `path:"ward"`
	Name string              `json:"name" form:"name" validate:"required,max=80"`
	Age  route.Optional[int] `json:"age" form:"age" validate:"min=0,max=150"`
}

func newAPI() *route.Mux {
	api := route.NewMux(route.Config{
		Untimed: true, // for the sake of stable output
		Errors: route.Errors{
			route.Is(errUnknown, route.Problem{Status: http.StatusNotFound, Type: "unknown-patient", Detail: "there is no patient of that id"}),
		},
	})
	err := api.Add(
		route.New("GET", "/patients/{id}", func(_ context.Context, req get) (patient, error) {
			if req.ID != "P000042" {
				return patient{}, errUnknown
			}
			return patient{req.ID, "Ada"}, nil
		}).Name("getPatient").Describe("One patient."),
		route.New("POST", "/wards/{ward}/patients", func(_ context.Context, req create) (patient, error) {
			return patient{"P000043", req.Name + " of " + req.Ward}, nil
		}).Name("createPatient").Status(http.StatusCreated),
	)
	if err != nil {
		panic(err)
	}
	return api
}

func send(h http.Handler, method, target, contentType, body string) {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	fmt.Println(w.Code, w.Body)
}

func ExampleNew() {
	api := newAPI()
	send(api, "GET", "/patients/P000042", "", "")
	send(api, "GET", "/patients/P000001", "", "")
	send(api, "POST", "/wards/7/patients", "application/json", `{"name":"Grace","age":30}`)
	send(api, "POST", "/wards/7/patients", "application/x-www-form-urlencoded", `name=Grace`)
	// Output:
	// 200 {"id":"P000042","name":"Ada"}
	// 404 {"type":"urn:spillway:problem:unknown-patient","title":"Not Found","status":404,"detail":"there is no patient of that id"}
	// 201 {"id":"P000043","name":"Grace of 7"}
	// 201 {"id":"P000043","name":"Grace of 7"}
}

// One answer lists all faults of a request, from all its sources.
func ExampleInvalidError() {
	send(newAPI(), "POST", "/wards/7/patients?colour=red", "application/json", `{"age":151.5,"nmae":"Grace"}`)
	// Output:
	// 400 {"type":"urn:spillway:problem:invalid-request","title":"Bad Request","status":400,"detail":"the request has faults; each is listed","errors":[{"detail":"must be a whole number","pointer":"#/age"},{"detail":"is not a member","pointer":"#/nmae"},{"detail":"is required","pointer":"#/name"},{"detail":"is not a parameter","parameter":"colour","in":"query"}]}
}

// An error in a type is an error at start-up that names the field.
func ExampleMux_Add() {
	type search struct {
		Limit int `query:"limit" validate:"min=one"`
		Sort  string
	}
	err := route.NewMux(route.Config{}).Add(
		route.New("GET", "/search", func(context.Context, search) (route.Empty, error) { return route.Empty{}, nil }),
	)
	fmt.Println(err)
	// Output:
	// route GET /search: request type route_test.search: field Limit: rule min=one: strconv.ParseInt: parsing "one": invalid syntax
	// field Sort: says nowhere where it comes from: give it a path, query, header, body, json, form or xml tag, or json:"-"
}

// A route is a handler for a plain http.ServeMux as well.
func ExampleRoute_Handler() {
	hello := route.New("GET", "/hello/{name}", func(_ context.Context, req struct {
		Name string `path:"name"`
	}) (route.Response[string], error) {
		return route.Response[string]{Code: http.StatusAccepted, Body: "hello " + req.Name}, nil
	})
	h, err := hello.Handler(route.Config{Untimed: true})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle(hello.Pattern(), h)
	send(mux, "GET", "/hello/Ada", "", "")
	// Output: 202 "hello Ada"
}
