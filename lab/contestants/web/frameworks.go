package main

import (
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/gin-gonic/gin/binding"
	"github.com/go-playground/validator/v10"
)

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
