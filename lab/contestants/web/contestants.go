package main

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/go-playground/validator/v10"
	"github.com/valyala/fasthttp"

	"github.com/spillway-go/spillway/lab/contestants/web/specimen"
	"github.com/spillway-go/spillway/lab/routes"
)

// handlers serve a contestant's routes: one of both is set.
type handlers struct {
	http http.Handler
	fast fasthttp.RequestHandler
}

// starts are the contestants, by name. What differs between them is in the test of bad
// requests and in the report.
var starts = map[string]func() (handlers, error){
	routes.Spillway:      startSpillway(true),
	routes.SpillwayTimed: startSpillway(false),
	routes.Mux:           startMux(false),
	routes.MuxValidator:  startMux(true),
	routes.Chi:           startChi,
	routes.Gin:           startGin,
	routes.GinTyped:      startGinTyped,
	routes.Echo:          startEcho,
	routes.Huma:          startHuma,
	routes.Fuego:         startFuego,
	routes.Fiber:         startFiber,
	routes.Fresh:         startSpecimen(specimen.Build{}),
	routes.Pooled:        startSpecimen(specimen.Build{Pooled: true}),
	routes.PooledShort:   startSpecimen(specimen.Build{Pooled: true, Short: true}),
}

// start starts a contestant of a table, or what measures the harness.
func start(table, name string) (handlers, error) {
	switch f := starts[name]; {
	case f != nil:
		return f()
	case name != routes.Nothing:
		return handlers{}, fmt.Errorf("there is no contestant %q", name)
	case table == routes.TableFiber:
		return handlers{fast: func(*fasthttp.RequestCtx) {}}, nil
	}
	return handlers{http: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}, nil
}

// newValidator checks newPatient by its validate tags.
func newValidator() (*validator.Validate, error) {
	v := validator.New(validator.WithRequiredStructEnabled())
	return v, v.RegisterValidation("phone", isPhone)
}

func isPhone(f validator.FieldLevel) bool { return phone.MatchString(f.Field().String()) }

// fault is the hand-written answer about one field.
type fault struct {
	Field string `json:"field"`
	Rule  string `json:"rule"`
}

// faultsOf lists what a validator found.
func faultsOf(err error) []fault {
	all, ok := errors.AsType[validator.ValidationErrors](err)
	if !ok {
		return []fault{{"body", err.Error()}}
	}
	var out []fault
	for _, one := range all {
		out = append(out, fault{one.Field(), one.Tag()})
	}
	return out
}

// checkByHand returns the first thing that is wrong.
func checkByHand(p *newPatient) error {
	switch {
	case len(p.Name) < 2 || len(p.Name) > 80:
		return errors.New("name must have 2 to 80 characters")
	case !isEmail(p.Email):
		return errors.New("email must be an address")
	case p.Gender != "female" && p.Gender != "male" && p.Gender != "other" && p.Gender != "unknown":
		return errors.New("gender must be female, male, other or unknown")
	case p.Age < 1 || p.Age > 150:
		return errors.New("age must be 1 to 150")
	case p.Phone != "" && !phone.MatchString(p.Phone):
		return errors.New("phone must match " + phonePattern)
	case len(p.Note) > 1000:
		return errors.New("note must have at most 1000 characters")
	case len(p.Tags) > 8:
		return errors.New("tags must be at most 8")
	}
	return nil
}
