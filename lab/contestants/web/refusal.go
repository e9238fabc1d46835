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

// params checks the ward and reads an optional truth value.
func params(ward, notify string) (bool, error) {
	if len(ward) > longest {
		return false, bad(http.StatusBadRequest, "ward", "is too long")
	}
	if notify == "" {
		return false, nil
	}
	yes, err := strconv.ParseBool(notify)
	if err != nil {
		return false, bad(http.StatusBadRequest, "notify", "must be true or false")
	}
	return yes, nil
}

func checkID(id string) error {
	if len(id) != idSize {
		return bad(http.StatusBadRequest, "id", "must have 7 characters")
	}
	return nil
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
