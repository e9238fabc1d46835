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
	if len(ward) > longest {
		return fiberRefuse(c, http.StatusBadRequest, fault{"ward", "is too long"})
	}
	notify, err := flag(c.Query("notify"))
	if err != nil {
		return fiberRefuse(c, http.StatusBadRequest, fault{"notify", "must be true or false"})
	}
	switch media(c.Get(fiber.HeaderContentType)) {
	case jsonType:
		err = c.Bind().JSON(&p)
	case formType:
		err = c.Bind().Form(&p)
	case "":
		return fiberRefuse(c, http.StatusBadRequest, fault{"Content-Type", "is missing"})
	default:
		return fiberRefuse(c, http.StatusUnsupportedMediaType, fault{"Content-Type", "is not known"})
	}
	if err != nil {
		return fiberRefuse(c, http.StatusBadRequest, faultsOf(err)...)
	}
	v := created(ward, notify, &p)
	return c.Status(http.StatusCreated).JSON(&v)
}

func fiberGet(c fiber.Ctx) error {
	id := c.Params("id")
	if len(id) != idSize {
		return fiberRefuse(c, http.StatusBadRequest, fault{"id", "must have 7 characters"})
	}
	v := found(id)
	return c.JSON(&v)
}

func fiberRefuse(c fiber.Ctx, status int, faults ...fault) error {
	return c.Status(status).JSON(fiber.Map{"errors": faults})
}
