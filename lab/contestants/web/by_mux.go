package main

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"
)

// byHand is careful hand-written code on net/http.
type byHand struct {
	check func(*newPatient) error
	path  func(*http.Request, string) string
}

func startMux(validated bool) func() (handlers, error) {
	return func() (handlers, error) {
		v, err := newValidator()
		h := byHand{check: checkByHand, path: (*http.Request).PathValue}
		if validated {
			h.check = func(p *newPatient) error { return v.Struct(p) }
		}
		mux := http.NewServeMux()
		mux.HandleFunc("POST "+createPath, h.create)
		mux.HandleFunc("GET "+getPath, h.get)
		return handlers{http: mux}, err
	}
}

func startChi() (handlers, error) {
	v, err := newValidator()
	h := byHand{check: func(p *newPatient) error { return v.Struct(p) }, path: chi.URLParam}
	mux := chi.NewRouter()
	mux.Post(createPath, h.create)
	mux.Get(getPath, h.get)
	return handlers{http: mux}, err
}

func (h byHand) create(w http.ResponseWriter, r *http.Request) {
	v, err := create(h.path(r, "ward"), r.URL.Query().Get("notify"), func(p *newPatient) error { return h.read(w, r, p) })
	answerByHand(w, http.StatusCreated, v, err)
}

func (h byHand) get(w http.ResponseWriter, r *http.Request) {
	v, err := lookUp(h.path(r, "id"))
	answerByHand(w, http.StatusOK, v, err)
}

func (h byHand) read(w http.ResponseWriter, r *http.Request, p *newPatient) (err error) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	switch media(r.Header.Get("Content-Type")) {
	case jsonType:
		err = decodeByHand(r.Body, p)
	case formType:
		err = p.fromForm(r)
	case "":
		err = errNoType
	default:
		err = errOtherType
	}
	if err != nil {
		return err
	}
	return h.check(p)
}

func answerByHand(w http.ResponseWriter, status int, v patient, err error) {
	var answer any = &v
	if err != nil {
		status, answer = refusalOf(err)
	}
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(status)
	_ = encodeByHand(w, answer) // the client has gone
}

func (p *newPatient) fromForm(r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return err
	}
	f := r.PostForm
	age, err := 0, error(nil)
	if s := f.Get("age"); s != "" {
		if age, err = strconv.Atoi(s); err != nil {
			return errors.New("age must be a whole number")
		}
	}
	*p = newPatient{Name: f.Get("name"), Email: f.Get("email"), Gender: f.Get("gender"), Age: age, Phone: f.Get("phone"), Note: f.Get("note"), Tags: f["tags"]}
	return nil
}

// checkByHand returns the first thing that is wrong.
func checkByHand(p *newPatient) error {
	switch {
	case len(p.Name) < 2 || len(p.Name) > 80:
		return errors.New("name must have 2 to 80 characters")
	case !isEmail(p.Email):
		return errors.New("email must be an address")
	case p.Gender != "female" && p.Gender != "male" && p.Gender != "other" && p.Gender != "unknown":
		return errors.New("gender must be female, male, other or unknown")
	case p.Age < 1 || p.Age > 150:
		return errors.New("age must be 1 to 150")
	case p.Phone != "" && !phone.MatchString(p.Phone):
		return errors.New("phone must match " + phonePattern)
	case len(p.Note) > 1000:
		return errors.New("note must have at most 1000 characters")
	case len(p.Tags) > 8:
		return errors.New("tags must be at most 8")
	}
	return nil
}

// isEmail is a careful hand-written check, not a parser.
func isEmail(s string) bool {
	at := strings.LastIndexByte(s, '@')
	if at < 1 || at > 64 || len(s) > 254 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '@' && i != at || strings.IndexByte(`"(),:;<>[\]`, c) >= 0 {
			return false
		}
	}
	dot := strings.LastIndexByte(s[at+1:], '.')
	return dot > 0 && at+1+dot < len(s)-1 && !strings.Contains(s, "..")
}
