package main

import (
	"errors"
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
	return fuegoAnswer(create(c.PathParam("ward"), c.QueryParam("notify"), func(p *newPatient) (err error) {
		*p, err = c.Body()
		return err
	}))
}

func fuegoGet(c fuego.ContextNoBody) (*patient, error) { return fuegoAnswer(lookUp(c.PathParam("id"))) }

func fuegoAnswer(v patient, err error) (*patient, error) {
	if r, ok := errors.AsType[*refusal](err); ok {
		err = fuego.BadRequestError{Detail: r.Error()}
	}
	return &v, err
}
