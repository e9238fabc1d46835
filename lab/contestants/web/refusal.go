package main

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-playground/validator/v10"
)

// What those contestants share who look for bad requests themselves.

// refusal is the answer to a bad request. As an error, it is what is wrong.
type refusal struct {
	status int
	Errors []fault `json:"errors"`
}

type fault struct {
	Field string `json:"field"`
	Rule  string `json:"rule"`
}

func bad(status int, field, rule string) *refusal {
	return &refusal{status, []fault{{field, rule}}}
}

func (r *refusal) Error() string { return r.Errors[0].Field + " " + r.Errors[0].Rule }

var (
	errNoType    = bad(http.StatusBadRequest, "Content-Type", "is missing")
	errOtherType = bad(http.StatusUnsupportedMediaType, "Content-Type", "is not known")
)

// refusalOf is the answer to what is wrong, which lists all that a validator found.
func refusalOf(err error) (status int, answer any) {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.status, r
	}
	r := bad(http.StatusBadRequest, "body", err.Error())
	if all, ok := errors.AsType[validator.ValidationErrors](err); ok {
		r.Errors = nil
		for _, one := range all {
			r.Errors = append(r.Errors, fault{one.Field(), one.Tag()})
		}
	}
	return r.status, r
}

// create checks path and query, lets read fill and check the body, and answers.
func create(ward, notify string, read func(*newPatient) error) (patient, error) {
	var p newPatient
	if len(ward) > longest {
		return patient{}, bad(http.StatusBadRequest, "ward", "is too long")
	}
	yes, err := false, error(nil)
	if notify != "" {
		if yes, err = strconv.ParseBool(notify); err != nil {
			return patient{}, bad(http.StatusBadRequest, "notify", "must be true or false")
		}
	}
	if err := read(&p); err != nil {
		return patient{}, err
	}
	return created(ward, yes, &p), nil
}

func lookUp(id string) (patient, error) {
	if len(id) != idSize {
		return patient{}, bad(http.StatusBadRequest, "id", "must have 7 characters")
	}
	return found(id), nil
}

// media is a content type without its parameters.
func media(contentType string) string {
	kind, _, _ := strings.Cut(contentType, ";")
	return strings.TrimSpace(kind)
}

// newValidator checks newPatient by its validate tags.
func newValidator() (*validator.Validate, error) {
	v := validator.New(validator.WithRequiredStructEnabled())
	return v, v.RegisterValidation("phone", isPhone)
}

func isPhone(f validator.FieldLevel) bool { return phone.MatchString(f.Field().String()) }
