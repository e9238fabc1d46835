package main

import (
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/gin-gonic/gin/binding"
	"github.com/go-fuego/fuego"
	"github.com/go-playground/validator/v10"
	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"
)

// The frameworks that bind and validate a body when the handler asks for it.

// newGin is a gin engine without middleware. Unknown members and validation are
// gin's global settings.
func newGin() (*gin.Engine, error) {
	gin.SetMode(gin.ReleaseMode)
	binding.EnableDecoderDisallowUnknownFields = true
	return gin.New(), binding.Validator.Engine().(*validator.Validate).RegisterValidation("phone", isPhone)
}

func startGin() (http.Handler, error) {
	engine, err := newGin()
	engine.POST(createGin, func(c *gin.Context) {
		c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, maxBody)
		c.JSON(create(c.Param("ward"), c.Query("notify"), c.ContentType(),
			func(p *newPatient) error { return c.ShouldBindWith(p, binding.JSON) },
			func(p *newPatient) error { return c.ShouldBindWith(p, binding.FormPost) }, nil))
	})
	engine.GET(getGin, func(c *gin.Context) { c.JSON(get(c.Param("id"))) })
	return engine, err
}

func startFuego() (http.Handler, error) {
	v, err := newValidator()
	s := fuego.NewServer(fuego.WithoutStartupMessages(), fuego.WithValidator(v), fuego.WithMaxBodySize(maxBody),
		fuego.WithLoggingMiddleware(fuego.LoggingConfig{DisableRequest: true, DisableResponse: true}),
		fuego.WithEngineOptions(fuego.WithOpenAPIConfig(fuego.OpenAPIConfig{Disabled: true}), fuego.DisableErrorHandler())) // it logs
	fuego.Post(s, createPath, func(c fuego.ContextWithBody[newPatient]) (*patient, error) {
		ward := c.PathParam("ward")
		notify, err := params(ward, c.QueryParam("notify"))
		if err != nil {
			return nil, err
		}
		p, err := c.Body()
		v := created(ward, notify, &p)
		return &v, err
	}, fuego.OptionDefaultStatusCode(http.StatusCreated), fuego.OptionQueryBool("notify", "tell the ward"))
	fuego.Get(s, getPath, func(c fuego.ContextNoBody) (*patient, error) {
		v := found(c.PathParam("id"))
		return &v, checkID(v.ID)
	})
	return s.Mux, err
}

func startEcho() (http.Handler, error) {
	v, err := newValidator()
	e := echo.New()
	e.Validator, e.JSONSerializer = rules{v}, strictEcho{}
	e.Use(middleware.BodyLimit(maxBody))
	e.POST(createGin, echoCreate)
	e.GET(getGin, func(c *echo.Context) error { return c.JSON(get(c.Param("id"))) })
	return e, err
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
