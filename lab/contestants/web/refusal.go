package main

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-playground/validator/v10"
)

// What those contestants share who look for bad requests themselves.

// refusal is the answer to a bad request.
type refusal struct {
	status int
	Errors []string `json:"errors"`
}

func (r *refusal) Error() string { return strings.Join(r.Errors, ", ") }

// bad is a refusal for what is wrong, a fault a line.
func bad(what string) *refusal { return &refusal{http.StatusBadRequest, strings.Split(what, "\n")} }

var (
	errNoType    = bad("Content-Type is missing")
	errOtherType = &refusal{http.StatusUnsupportedMediaType, []string{"Content-Type is not known"}}
)

// answer is v, or what is wrong.
func answer(status int, v *patient, err error) (int, any) {
	if err == nil {
		return status, v
	}
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.status, r
	}
	return http.StatusBadRequest, bad(err.Error())
}

// params checks path and query.
func params(ward, notify string) (bool, error) {
	yes, err := strconv.ParseBool(cmp.Or(notify, "false"))
	switch {
	case len(ward) > 20:
		return false, bad("ward is too long")
	case err != nil:
		return false, bad("notify must be true or false")
	}
	return yes, nil
}

// create checks path and query, lets fromJSON or fromForm fill what the body has, and
// answers. check is nil if the framework has checked what it filled.
func create(ward, notify, contentType string, fromJSON, fromForm, check func(*newPatient) error) (int, any) {
	yes, err := params(ward, notify)
	if err != nil {
		return answer(0, nil, err)
	}
	var p newPatient
	kind, _, _ := strings.Cut(contentType, ";")
	switch strings.TrimSpace(kind) {
	case jsonType:
		err = fromJSON(&p)
	case formType:
		err = fromForm(&p)
	case "":
		err = errNoType
	default:
		err = errOtherType
	}
	if err == nil && check != nil {
		err = check(&p)
	}
	v := created(ward, yes, &p)
	return answer(http.StatusCreated, &v, err)
}

func get(id string) (int, any) {
	v := found(id)
	return answer(http.StatusOK, &v, checkID(id))
}

func checkID(id string) error {
	if len(id) != 7 {
		return bad("id must have 7 characters")
	}
	return nil
}

// newValidator checks newPatient by its validate tags.
func newValidator() (*validator.Validate, error) {
	v := validator.New(validator.WithRequiredStructEnabled())
	return v, v.RegisterValidation("phone", isPhone)
}

func isPhone(f validator.FieldLevel) bool { return phone.MatchString(f.Field().String()) }
