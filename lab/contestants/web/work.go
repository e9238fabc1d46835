package main

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/spillway-go/spillway/lab/routes"
)

// The work of all contestants: a patient of a ward is created from path, query
// and body, with every field checked, or one is looked up by id.

// newPatient is the body for contestants that use go-playground/validator, with the tags
// they read: validate, or gin's binding.
type newPatient struct {
	Name   string   `json:"name" form:"name" validate:"required,min=2,max=80" binding:"required,min=2,max=80"`
	Email  string   `json:"email" form:"email" validate:"required,email" binding:"required,email"`
	Gender string   `json:"gender" form:"gender" validate:"required,oneof=female male other unknown" binding:"required,oneof=female male other unknown"`
	Age    int      `json:"age" form:"age" validate:"required,min=1,max=150" binding:"required,min=1,max=150"`
	Phone  string   `json:"phone" form:"phone" validate:"omitempty,phone" binding:"omitempty,phone"`
	Note   string   `json:"note" form:"note" validate:"max=1000" binding:"max=1000"`
	Tags   []string `json:"tags" form:"tags" validate:"max=8" binding:"max=8"`
}

// patient is the answer of all contestants. It has everything that was sent, so that
// every contestant must read all of it.
type patient struct {
	ID     string   `json:"id"`
	Ward   string   `json:"ward"`
	Notify bool     `json:"notify"`
	Name   string   `json:"name"`
	Email  string   `json:"email"`
	Gender string   `json:"gender"`
	Age    int      `json:"age"`
	Phone  string   `json:"phone,omitempty"`
	Note   string   `json:"note,omitempty"`
	Tags   []string `json:"tags,omitempty"`
}

const (
	newID   = "P000042"
	maxBody = 1 << 20 // bytes

	phonePattern = `^[+0-9 ]{5,20}$`

	createPath = "/wards/{ward}/patients" // as net/http and others write it
	createGin  = "/wards/:ward/patients"
	getPath    = "/patients/{id}"
	getGin     = "/patients/:id"

	jsonType = "application/json"
	formType = "application/x-www-form-urlencoded"
)

func created(ward string, notify bool, p *newPatient) patient {
	return patient{newID, ward, notify, p.Name, p.Email, p.Gender, p.Age, p.Phone, p.Note, p.Tags}
}

func found(id string) patient {
	return patient{ID: id, Ward: "7", Name: "Augusta Ada King", Email: "ada.king@example.org", Gender: "female", Age: 36}
}

var phone = regexp.MustCompile(phonePattern)

// request is one request and its expected answer.
type request struct {
	Method, Target, Type, Body string
	Status                     int
}

const (
	jsonBody = `{"name":"Augusta Ada King","email":"ada.king@example.org","gender":"female","age":36,"phone":"+44 20 7946 0958","tags":["vip","allergy:penicillin"]}`
	formBody = `name=Augusta+Ada+King&email=ada.king%40example.org&gender=female&age=36&phone=%2B44+20+7946+0958&tags=vip&tags=allergy%3Apenicillin`
	target   = "/wards/7/patients?notify=true"
)

// noted is the body with one more field, of so many characters.
func noted(length int) string {
	return strings.TrimSuffix(jsonBody, "}") + `,"note":"` + strings.Repeat("x", length) + `"}`
}

// Requests of the scenarios.
var requests = map[string]request{
	routes.JSON:     {http.MethodPost, target, jsonType, jsonBody, http.StatusCreated},
	routes.Form:     {http.MethodPost, target, formType, formBody, http.StatusCreated},
	routes.Short:    {http.MethodPost, target, jsonType, noted(50), http.StatusCreated},
	routes.Large:    {http.MethodPost, target, jsonType, noted(500), http.StatusCreated},
	routes.Parallel: {http.MethodPost, target, jsonType, jsonBody, http.StatusCreated},
	routes.Get:      {http.MethodGet, "/patients/" + newID, "", "", http.StatusOK},
}
