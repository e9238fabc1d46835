package main

import (
	"encoding/json"
	"net/http"

	"github.com/go-playground/validator/v10"
	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"
)

func startEcho() (handlers, error) {
	v, err := newValidator()
	e := echo.New()
	e.Validator = echoValidator{v}
	e.JSONSerializer = strictEcho{}
	e.Use(middleware.BodyLimit(maxBody))
	e.POST(createGin, echoCreate)
	e.GET(getGin, echoGet)
	return handlers{http: e}, err
}

type echoValidator struct{ rules *validator.Validate }

func (v echoValidator) Validate(p any) error { return v.rules.Struct(p) }

// strictEcho refuses unknown members, which echo's own serializer cannot.
type strictEcho struct{ echo.DefaultJSONSerializer }

func (strictEcho) Deserialize(c *echo.Context, v any) error {
	d := json.NewDecoder(c.Request().Body)
	d.DisallowUnknownFields()
	return d.Decode(v)
}

// echoParams are those that Bind does not take for a POST, or not beside a body.
type echoParams struct {
	Ward   string `param:"ward" validate:"max=20"`
	Notify bool   `query:"notify"`
}

func echoCreate(c *echo.Context) error {
	var from echoParams
	var p newPatient
	err := echo.BindPathValues(c, &from)
	if err == nil {
		err = echo.BindQueryParams(c, &from)
	}
	if err == nil {
		err = echo.BindBody(c, &p)
	}
	switch {
	case c.Request().Header.Get(echo.HeaderContentType) == "":
		err = errNoType
	case err == nil:
		if err = c.Validate(&from); err == nil {
			err = c.Validate(&p)
		}
	case echo.StatusCode(err) == http.StatusUnsupportedMediaType:
		err = errOtherType
	}
	return echoAnswer(c, http.StatusCreated, created(from.Ward, from.Notify, &p), err)
}

func echoGet(c *echo.Context) error {
	v, err := lookUp(c.Param("id"))
	return echoAnswer(c, http.StatusOK, v, err)
}

func echoAnswer(c *echo.Context, status int, v patient, err error) error {
	if err != nil {
		return c.JSON(refusalOf(err))
	}
	return c.JSON(status, &v)
}
