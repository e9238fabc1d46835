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
		h := byHand{check: checkByHand, path: (*http.Request).PathValue}
		if validated {
			v, err := newValidator()
			if err != nil {
				return handlers{}, err
			}
			h.check = func(p *newPatient) error { return v.Struct(p) }
		}
		mux := http.NewServeMux()
		mux.HandleFunc("POST "+createPath, h.create)
		mux.HandleFunc("GET "+getPath, h.get)
		return handlers{http: mux}, nil
	}
}

func startChi() (handlers, error) {
	v, err := newValidator()
	if err != nil {
		return handlers{}, err
	}
	h := byHand{check: func(p *newPatient) error { return v.Struct(p) }, path: chi.URLParam}
	mux := chi.NewRouter()
	mux.Post(createPath, h.create)
	mux.Get(getPath, h.get)
	return handlers{http: mux}, nil
}

func (h byHand) create(w http.ResponseWriter, r *http.Request) {
	var p newPatient
	ward := h.path(r, "ward")
	if len(ward) > longest {
		refuse(w, http.StatusBadRequest, fault{"ward", "is too long"})
		return
	}
	notify, err := flag(r.URL.Query().Get("notify"))
	if err != nil {
		refuse(w, http.StatusBadRequest, fault{"notify", "must be true or false"})
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	switch kind := r.Header.Get("Content-Type"); media(kind) {
	case jsonType:
		err = decodeByHand(r.Body, &p)
	case formType:
		err = p.fromForm(r)
	case "":
		refuse(w, http.StatusBadRequest, fault{"Content-Type", "is missing"})
		return
	default:
		refuse(w, http.StatusUnsupportedMediaType, fault{"Content-Type", "is not known"})
		return
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, fault{"body", err.Error()})
		return
	}
	if err := h.check(&p); err != nil {
		refuse(w, http.StatusBadRequest, faultsOf(err)...)
		return
	}
	v := created(ward, notify, &p)
	answerByHand(w, http.StatusCreated, &v)
}

func (h byHand) get(w http.ResponseWriter, r *http.Request) {
	id := h.path(r, "id")
	if len(id) != idSize {
		refuse(w, http.StatusBadRequest, fault{"id", "must have 7 characters"})
		return
	}
	v := found(id)
	answerByHand(w, http.StatusOK, &v)
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

// media is a content type without its parameters.
func media(contentType string) string {
	kind, _, _ := strings.Cut(contentType, ";")
	return strings.TrimSpace(kind)
}

// flag reads an optional truth value.
func flag(s string) (bool, error) {
	if s == "" {
		return false, nil
	}
	return strconv.ParseBool(s)
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

func refuse(w http.ResponseWriter, status int, faults ...fault) {
	answerByHand(w, status, struct {
		Errors []fault `json:"errors"`
	}{faults})
}

var errMore = errors.New("there is more than one document in the body")
