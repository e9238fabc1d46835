package main

import (
	"net/http"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"
)

func startEcho() (handlers, error) {
	v, err := newValidator()
	e := echo.New()
	e.Validator = rules{v}
	e.JSONSerializer = strictEcho{}
	e.Use(middleware.BodyLimit(maxBody))
	e.POST(createGin, echoCreate)
	e.GET(getGin, echoGet)
	return handlers{http: e}, err
}

// strictEcho refuses unknown members, which echo's own serializer cannot.
type strictEcho struct{ echo.DefaultJSONSerializer }

func (strictEcho) Deserialize(c *echo.Context, v any) error {
	return strict(c.Request().Body).Decode(v)
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
	v := created(from.Ward, from.Notify, &p)
	return c.JSON(answer(http.StatusCreated, &v, err))
}

func echoGet(c *echo.Context) error { return c.JSON(get(c.Param("id"))) }
