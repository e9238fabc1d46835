package main

import (
	"bytes"
	"net/http"

	"github.com/gofiber/fiber/v3"
)

func startFiber() (handlers, error) {
	v, err := newValidator()
	app := fiber.New(fiber.Config{BodyLimit: maxBody, StructValidator: rules{v}, JSONDecoder: func(data []byte, v any) error { return strict(bytes.NewReader(data)).Decode(v) }})
	app.Post(createGin, fiberCreate)
	app.Get(getGin, fiberGet)
	return handlers{fast: app.Handler()}, err
}

func fiberCreate(c fiber.Ctx) error {
	v, err := create(c.Params("ward"), c.Query("notify"), c.Get(fiber.HeaderContentType),
		func(p *newPatient) error { return c.Bind().JSON(p) },
		func(p *newPatient) error { return c.Bind().Form(p) })
	return fiberAnswer(c, http.StatusCreated, v, err)
}

func fiberGet(c fiber.Ctx) error {
	v, err := lookUp(c.Params("id"))
	return fiberAnswer(c, http.StatusOK, v, err)
}

func fiberAnswer(c fiber.Ctx, status int, v patient, err error) error {
	var answer any = &v
	if err != nil {
		status, answer = refusalOf(err)
	}
	return c.Status(status).JSON(answer)
}
