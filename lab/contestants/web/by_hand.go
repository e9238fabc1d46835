package main

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"
)

func startMux() (http.Handler, error) {
	return byHand(http.NewServeMux(), (*http.Request).PathValue, checkByHand), nil
}

func startMuxValidator() (http.Handler, error) {
	v, err := newValidator()
	return byHand(http.NewServeMux(), (*http.Request).PathValue, func(p *newPatient) error { return v.Struct(p) }), err
}

func startChi() (http.Handler, error) {
	v, err := newValidator()
	return byHand(chi.NewRouter(), chi.URLParam, func(p *newPatient) error { return v.Struct(p) }), err
}

// byHand is careful hand-written code on net/http. chi understands the mux's patterns.
func byHand(mux interface {
	http.Handler
	Handle(string, http.Handler)
}, path func(*http.Request, string) string, check func(*newPatient) error) http.Handler {
	mux.Handle("POST "+createPath, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		status, v := create(path(r, "ward"), r.URL.Query().Get("notify"), r.Header.Get("Content-Type"),
			func(p *newPatient) error { return decodeByHand(r.Body, p) },
			func(p *newPatient) error { return p.fromForm(r) }, check)
		answerByHand(w, status, v)
	}))
	mux.Handle("GET "+getPath, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, v := get(path(r, "id"))
		answerByHand(w, status, v)
	}))
	return mux
}

func answerByHand(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(status)
	_ = encodeByHand(w, v) // the client has gone
}

func (p *newPatient) fromForm(r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return err
	}
	f := r.PostForm
	age, err := strconv.Atoi(cmp.Or(f.Get("age"), "0"))
	if err != nil {
		return errors.New("age must be a whole number")
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
