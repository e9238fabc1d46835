// Command gin shows admission in front of the routes of a gin engine.
//
//	go run ./gin
package main

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/examples/frameworks/internal/serve"
	"github.com/spillway-go/spillway/limiter"
)

func main() {
	gin.SetMode(gin.ReleaseMode)
	serve.Main(handler)
}

// handler admits in gin's chain, after what says the priority. Where all requests are
// equal, admit(engine) around the whole engine is shorter and needs no adapter.
func handler(lim *limiter.Limiter) (http.Handler, error) {
	admit, err := admissionhttp.New(admissionhttp.Config{Limiter: lim})
	if err != nil {
		return nil, err
	}
	engine := gin.New()
	engine.Use(gin.Recovery())
	engine.GET("/readyz", gin.WrapH(admissionhttp.Ready(lim.Open)))
	engine.POST("/orders", critical, middleware(admit), func(c *gin.Context) { c.Status(http.StatusCreated) })
	admitted := engine.Group("/", middleware(admit))
	admitted.GET("/orders/:id", func(c *gin.Context) { c.String(http.StatusOK, "order %s\n", c.Param("id")) })
	admitted.GET("/broken", func(*gin.Context) { panic("no database") })
	return engine, nil
}

// critical comes before admission, which reads the priority.
func critical(c *gin.Context) {
	c.Request = c.Request.WithContext(spillway.WithPriority(c.Request.Context(), spillway.Critical))
}
