package main

import (
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/gin-gonic/gin/binding"
	"github.com/go-playground/validator/v10"

	"github.com/spillway-go/spillway/route"
	"github.com/spillway-go/spillway/routegin"
)

// newGin is a gin engine without middleware. Unknown members and validation are
// gin's global settings.
func newGin() (*gin.Engine, error) {
	gin.SetMode(gin.ReleaseMode)
	binding.EnableDecoderDisallowUnknownFields = true
	v, ok := binding.Validator.Engine().(*validator.Validate)
	if !ok {
		return nil, errors.New("gin has another validator")
	}
	return gin.New(), v.RegisterValidation("phone", isPhone)
}

func startGin() (handlers, error) {
	engine, err := newGin()
	engine.POST(createGin, ginCreate)
	engine.GET(getGin, ginGet)
	return handlers{http: engine}, err
}

// startGinTyped is package route on a gin engine, whose handlers are given a
// context of their own that is never pooled.
func startGinTyped() (handlers, error) {
	engine, err := newGin()
	if err != nil {
		return handlers{}, err
	}
	api := routegin.NewAPI(route.Config{Untimed: true, Limits: route.Limits{Body: maxBody}})
	return handlers{http: engine}, api.Register(engine,
		routegin.New("POST", createGin, func(_ *routegin.Context, q spillwayCreate) (patient, error) { return q.created(), nil }).Status(http.StatusCreated),
		routegin.New("GET", getGin, func(_ *routegin.Context, q spillwayGet) (patient, error) { return found(q.ID), nil }))
}

func ginCreate(c *gin.Context) {
	v, err := create(c.Param("ward"), c.Query("notify"), func(p *newPatient) error {
		c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, maxBody)
		switch c.ContentType() {
		case jsonType:
			return c.ShouldBindWith(p, binding.JSON)
		case formType:
			return c.ShouldBindWith(p, binding.FormPost)
		case "":
			return errNoType
		}
		return errOtherType
	})
	ginAnswer(c, http.StatusCreated, v, err)
}

func ginGet(c *gin.Context) {
	v, err := lookUp(c.Param("id"))
	ginAnswer(c, http.StatusOK, v, err)
}

func ginAnswer(c *gin.Context, status int, v patient, err error) {
	if err != nil {
		c.JSON(refusalOf(err))
		return
	}
	c.JSON(status, &v)
}
