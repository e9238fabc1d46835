package main

import (
	"net/http"

	"github.com/go-fuego/fuego"
)

func startFuego() (handlers, error) {
	v, err := newValidator()
	if err != nil {
		return handlers{}, err
	}
	s := fuego.NewServer(fuego.WithoutStartupMessages(), fuego.WithValidator(v), fuego.WithMaxBodySize(maxBody),
		fuego.WithLoggingMiddleware(fuego.LoggingConfig{DisableRequest: true, DisableResponse: true}),
		fuego.WithEngineOptions(fuego.WithOpenAPIConfig(fuego.OpenAPIConfig{Disabled: true}), fuego.DisableErrorHandler())) // it logs
	fuego.Post(s, createPath, fuegoCreate, fuego.OptionDefaultStatusCode(http.StatusCreated), fuego.OptionQueryBool("notify", "tell the ward"))
	fuego.Get(s, getPath, fuegoGet)
	return handlers{http: s.Mux}, nil
}

func fuegoCreate(c fuego.ContextWithBody[newPatient]) (*patient, error) {
	ward := c.PathParam("ward")
	notify, err := params(ward, c.QueryParam("notify"))
	if err != nil {
		return nil, err
	}
	p, err := c.Body()
	v := created(ward, notify, &p)
	return &v, err
}

func fuegoGet(c fuego.ContextNoBody) (*patient, error) {
	v := found(c.PathParam("id"))
	return &v, checkID(v.ID)
}
