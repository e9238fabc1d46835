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
	if len(ward) > longest {
		return nil, fuego.BadRequestError{Detail: "ward is too long"}
	}
	notify, err := flag(c.QueryParam("notify"))
	if err != nil {
		return nil, fuego.BadRequestError{Detail: "notify: " + err.Error()}
	}
	p, err := c.Body()
	if err != nil {
		return nil, err
	}
	v := created(ward, notify, &p)
	return &v, nil
}

func fuegoGet(c fuego.ContextNoBody) (*patient, error) {
	id := c.PathParam("id")
	if len(id) != idSize {
		return nil, fuego.BadRequestError{Detail: "id must have 7 characters"}
	}
	v := found(id)
	return &v, nil
}
