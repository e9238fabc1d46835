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
	if c.Request().Header.Get(echo.HeaderContentType) == "" {
		return echoRefuse(c, fault{"Content-Type", "is missing"})
	}
	if err := echo.BindPathValues(c, &from); err != nil {
		return echoRefuse(c, fault{"ward", err.Error()})
	}
	if err := echo.BindQueryParams(c, &from); err != nil {
		return echoRefuse(c, fault{"notify", err.Error()})
	}
	if err := echo.BindBody(c, &p); err != nil {
		if echo.StatusCode(err) == http.StatusUnsupportedMediaType {
			return err
		}
		return echoRefuse(c, fault{"body", err.Error()})
	}
	if err := c.Validate(&from); err != nil {
		return echoRefuse(c, faultsOf(err)...)
	}
	if err := c.Validate(&p); err != nil {
		return echoRefuse(c, faultsOf(err)...)
	}
	v := created(from.Ward, from.Notify, &p)
	return c.JSON(http.StatusCreated, &v)
}

func echoGet(c *echo.Context) error {
	id := c.Param("id")
	if len(id) != idSize {
		return echoRefuse(c, fault{"id", "must have 7 characters"})
	}
	v := found(id)
	return c.JSON(http.StatusOK, &v)
}

func echoRefuse(c *echo.Context, faults ...fault) error {
	return c.JSON(http.StatusBadRequest, map[string]any{"errors": faults})
}
