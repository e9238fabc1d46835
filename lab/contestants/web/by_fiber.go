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
	var p newPatient
	ward := c.Params("ward")
	notify, err := params(ward, c.Query("notify"))
	if err == nil {
		err = fiberRead(c, &p)
	}
	if err != nil {
		return fiberRefuse(c, err)
	}
	v := created(ward, notify, &p)
	return c.Status(http.StatusCreated).JSON(&v)
}

func fiberRead(c fiber.Ctx, p *newPatient) error {
	switch media(c.Get(fiber.HeaderContentType)) {
	case jsonType:
		return c.Bind().JSON(p)
	case formType:
		return c.Bind().Form(p)
	case "":
		return errNoType
	}
	return errOtherType
}

func fiberGet(c fiber.Ctx) error {
	id := c.Params("id")
	if err := checkID(id); err != nil {
		return fiberRefuse(c, err)
	}
	v := found(id)
	return c.JSON(&v)
}

func fiberRefuse(c fiber.Ctx, err error) error {
	status, answer := refusalOf(err)
	return c.Status(status).JSON(answer)
}
