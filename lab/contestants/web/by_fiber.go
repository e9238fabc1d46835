package main

import (
	"bytes"
	"encoding/json"
	"net/http"

	"github.com/go-playground/validator/v10"
	"github.com/gofiber/fiber/v3"
)

func startFiber() (handlers, error) {
	v, err := newValidator()
	app := fiber.New(fiber.Config{BodyLimit: maxBody, StructValidator: fiberValidator{v}, JSONDecoder: strictFiber})
	app.Post(createGin, fiberCreate)
	app.Get(getGin, fiberGet)
	return handlers{fast: app.Handler()}, err
}

type fiberValidator struct{ rules *validator.Validate }

func (v fiberValidator) Validate(p any) error { return v.rules.Struct(p) }

// strictFiber refuses unknown members.
func strictFiber(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

func fiberCreate(c fiber.Ctx) error {
	v, err := create(c.Params("ward"), c.Query("notify"), func(p *newPatient) error {
		switch media(c.Get(fiber.HeaderContentType)) {
		case jsonType:
			return c.Bind().JSON(p)
		case formType:
			return c.Bind().Form(p)
		case "":
			return errNoType
		}
		return errOtherType
	})
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
