package main

import (
	"bytes"

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
	status, v := create(c.Params("ward"), c.Query("notify"), c.Get(fiber.HeaderContentType),
		func(p *newPatient) error { return c.Bind().JSON(p) },
		func(p *newPatient) error { return c.Bind().Form(p) })
	return c.Status(status).JSON(v)
}

func fiberGet(c fiber.Ctx) error {
	status, v := get(c.Params("id"))
	return c.Status(status).JSON(v)
}
