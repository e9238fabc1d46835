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
	var p newPatient
	ward := c.Param("ward")
	if len(ward) > longest {
		ginRefuse(c, http.StatusBadRequest, fault{"ward", "is too long"})
		return
	}
	notify, err := flag(c.Query("notify"))
	if err != nil {
		ginRefuse(c, http.StatusBadRequest, fault{"notify", "must be true or false"})
		return
	}
	c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, maxBody)
	switch c.ContentType() {
	case jsonType:
		err = c.ShouldBindWith(&p, binding.JSON)
	case formType:
		err = c.ShouldBindWith(&p, binding.FormPost)
	case "":
		ginRefuse(c, http.StatusBadRequest, fault{"Content-Type", "is missing"})
		return
	default:
		ginRefuse(c, http.StatusUnsupportedMediaType, fault{"Content-Type", "is not known"})
		return
	}
	if err != nil {
		ginRefuse(c, http.StatusBadRequest, faultsOf(err)...)
		return
	}
	v := created(ward, notify, &p)
	c.JSON(http.StatusCreated, &v)
}

func ginGet(c *gin.Context) {
	id := c.Param("id")
	if len(id) != idSize {
		ginRefuse(c, http.StatusBadRequest, fault{"id", "must have 7 characters"})
		return
	}
	v := found(id)
	c.JSON(http.StatusOK, &v)
}

func ginRefuse(c *gin.Context, status int, faults ...fault) {
	c.JSON(status, gin.H{"errors": faults})
}
