// Command echo shows admission in front of the routes of an echo server.
//
//	go run ./echo
package main

import (
	"net/http"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/examples/frameworks/internal/serve"
	"github.com/spillway-go/spillway/limiter"
)

func main() { serve.Main(handler) }

// handler puts answered behind admission: echo answers the error of a handler after
// all middleware has returned, and admission would take it for a success.
func handler(lim *limiter.Limiter) (http.Handler, error) {
	admission, err := admissionhttp.New(admissionhttp.Config{Limiter: lim})
	if err != nil {
		return nil, err
	}
	admit := echo.WrapMiddleware(admission)
	e := echo.New()
	e.Use(middleware.Recover())
	e.GET("/readyz", echo.WrapHandler(admissionhttp.Ready(lim.Open)))
	e.POST("/orders", func(c *echo.Context) error { return c.NoContent(http.StatusCreated) }, critical, admit, answered)
	admitted := e.Group("", admit, answered)
	admitted.GET("/orders/:id", func(c *echo.Context) error { return c.String(http.StatusOK, "order "+c.Param("id")+"\n") })
	admitted.GET("/broken", func(*echo.Context) error { panic("no database") })
	admitted.GET("/failing", func(*echo.Context) error { return echo.NewHTTPError(http.StatusBadGateway, "no database") })
	return e, nil
}

// answered has an error answered here, where the middleware before it sees the status.
func answered(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c *echo.Context) error {
		if err := next(c); err != nil {
			c.Echo().HTTPErrorHandler(c, err)
		}
		return nil
	}
}

// critical comes before admission, which reads the priority.
func critical(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c *echo.Context) error {
		r := c.Request()
		c.SetRequest(r.WithContext(spillway.WithPriority(r.Context(), spillway.Critical)))
		return next(c)
	}
}
