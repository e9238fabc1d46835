package routes

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/go-playground/validator/v10"
	"github.com/valyala/fasthttp"
)

// Contestants.
const (
	Spillway      = "spillway"
	SpillwayTimed = "spillway, Server-Timing"
	Mux           = "mux by hand"
	MuxValidator  = "mux, validator"
	Gin           = "gin by hand"
	GinTyped      = "spillway on gin"
	Echo          = "echo"
	Chi           = "chi, validator"
	Huma          = "huma"
	Fuego         = "fuego"
	Fiber         = "fiber"
	Nothing       = "nothing" // what the harness costs

	Fresh       = "fresh context"
	Pooled      = "pooled context"
	PooledShort = "pooled, without the Sprintf" // as the two published builds differ
)

// handlers serve a contestant's routes: one of both is set.
type handlers struct {
	http http.Handler
	fast fasthttp.RequestHandler
}

// rival is one way of writing the same two routes.
type rival struct {
	name  string
	start func() (handlers, error)
	lacks []string // scenarios that it cannot do
}

// overNetHTTP are the contestants that are compared over net/http. Their differences are
// in the test of bad requests and in the report.
var overNetHTTP = []rival{
	{name: Spillway, start: startSpillway(true)},
	{name: SpillwayTimed, start: startSpillway(false)},
	{name: Mux, start: startMux(false)},
	{name: MuxValidator, start: startMux(true)},
	{name: Chi, start: startChi},
	{name: Gin, start: startGin},
	{name: GinTyped, start: startGinTyped},
	{name: Echo, start: startEcho},
	{name: Huma, start: startHuma, lacks: []string{Form}},
	{name: Fuego, start: startFuego},
}

// noHandler measures the harness.
var noHandler = rival{name: Nothing, start: func() (handlers, error) {
	return handlers{http: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}, nil
}}

// overFastHTTP is separate for fiber: it is no net/http handler, so its request and its
// harness differ.
var overFastHTTP = []rival{
	{name: Fiber, start: startFiber},
	{name: Nothing, start: func() (handlers, error) { return handlers{fast: func(*fasthttp.RequestCtx) {}}, nil }},
}

func (c rival) does(scenario string) bool { return !slices.Contains(c.lacks, scenario) }

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

// find returns a contestant by its name.
func find(all []rival, name string) (rival, error) {
	for _, c := range all {
		if c.name == name {
			return c, nil
		}
	}
	return rival{}, fmt.Errorf("there is no contestant %q", name)
}

// Tables of contestants that are compared with each other.
const (
	tablePublished = "published shape"
	tableContest   = "contest"
	tableFiber     = "fiber on fasthttp"
)

func tables() map[string][]rival {
	return map[string][]rival{
		tablePublished: published,
		tableContest:   append(slices.Clone(overNetHTTP), noHandler),
		tableFiber:     overFastHTTP,
	}
}
