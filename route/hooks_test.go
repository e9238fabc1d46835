package route

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/spillway-go/spillway"
)

// lent is a response in memory that must be released.
type lent struct {
	Name string `json:"name"`
	back *[]string
}

func (l *lent) Close() error {
	*l.back = append(*l.back, l.Name)
	l.Name = "somebody else"
	return nil
}

// badly panics when it is encoded.
type badly struct{ *lent }

func (badly) MarshalJSON() ([]byte, error) { panic("boom") }

func TestResponseIsReleasedOnceItIsWritten(t *testing.T) {
	var back []string
	var fails error
	m := NewMux(Config{})
	check(t, m.Add(
		New("GET", "/a", func(context.Context, Empty) (*lent, error) { return &lent{"a", &back}, fails }),
		New("GET", "/b", func(context.Context, Empty) (io.Closer, error) { return &lent{"b", &back}, nil }),
		New("GET", "/c", func(context.Context, Empty) (*badly, error) { return &badly{&lent{"c", &back}}, nil }),
		New("GET", "/d", func(context.Context, Empty) (any, error) { return nil, nil }),
		New("GET", "/e", func(context.Context, Empty) (*lent, error) { return nil, nil }),
	))
	for path, want := range map[string]string{"/a": `{"name":"a"}`, "/b": `{"name":"b"}`, "/d": "null", "/e": "null"} {
		if w := do(m, "GET", path, "", ""); w.Code != 200 || strings.TrimSpace(w.Body.String()) != want {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	func() {
		defer func() { _ = recover() }()
		do(m, "GET", "/c", "", "")
		t.Error("no panic")
	}()
	fails = errors.New("no")
	do(m, "GET", "/a", "", "") // fails, so Close is not called
	counts := map[string]int{}
	for _, name := range back {
		counts[name]++
	}
	if want := map[string]int{"a": 1, "b": 1, "c": 1}; !reflect.DeepEqual(counts, want) {
		t.Errorf("given back: %v", counts)
	}
}

func TestOnProblemSeesEveryProblemAndMayAddToIt(t *testing.T) {
	var seen []string
	cfg := Config{OnProblem: func(w http.ResponseWriter, r *http.Request, p *Problem, err error) {
		seen = append(seen, err.Error())
		w.Header().Set("X-Problem", p.Type)
		p.Members = map[string]any{"request_id": "r\"1", "status": 200, "broken": func() {}, "a": []int{1}}
	}}
	m := NewMux(cfg)
	fails := errors.New("a bug")
	known := &Problem{Status: 404, Type: "unknown"}
	check(t, m.Add(
		New("GET", "/bug", func(context.Context, Empty) (Empty, error) { return Empty{}, fails }),
		New("GET", "/known", func(context.Context, Empty) (Empty, error) { return Empty{}, known }),
	))
	check(t, m.Handle("GET /plain", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.Problem(w, r, &spillway.Rejection{Reason: spillway.ReasonDraining})
	})))
	for path, status := range map[string]int{"/bug": 500, "/known": 404, "/plain": 503, "/nowhere": 404} {
		w := do(m, "GET", path, "", "")
		var p struct {
			Status    int
			RequestID string `json:"request_id"`
			A         []int
		}
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != status || p.Status != status || p.RequestID != `r"1` ||
			len(p.A) != 1 || strings.Contains(w.Body.String(), "broken") || w.Header().Get("X-Problem") == "" {
			t.Errorf("%s: %d %s %v, %v", path, w.Code, w.Body, w.Header(), err)
		}
	}
	if len(seen) != 4 {
		t.Errorf("seen %q", seen)
	}
	if known.Members != nil {
		t.Error("a problem that all requests share was changed")
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	fails, seen = context.Canceled, nil
	w := newHarness("GET", "/bug", "", "")
	w.request = w.request.WithContext(gone)
	if w.run(m); w.status != statusClientLeft || len(seen) != 1 {
		t.Errorf("for a client that has left: %d, and %q told", w.status, seen)
	}
}

func TestDiscreetFaultsRepeatNoNameOfTheClient(t *testing.T) {
	type in struct {
		Kind string `query:"kind" validate:"max=3"`
		List []struct {
			Name string `json:"name" validate:"max=3"`
		} `json:"list"`
		Map  map[string]struct{ N int8 } `json:"map"`
		Self string                      `form:"self" validate:"max=3"`
	}
	m := NewMux(Config{Discreet: true})
	check(t, m.Add(New("POST", "/", func(context.Context, in) (Empty, error) { return Empty{}, nil })))
	for _, c := range []struct{ query, media, body, want string }{
		{"?kind=long&secret=1", "application/json", `{}`, "query , query kind"},
		{"", "application/json", `{"secret":1}`, "#"},
		{"", "application/json", `{"list":[{"name":"a"},{"name":"long"}]}`, "#/list/1/name"},
		{"", "application/json", `{"list":[{"secret":{"a":1}}]}`, "#/list/0"},
		{"", "application/json", `{"map":{"secret":{"N":1000}}}`, "#/map"},
		{"", "application/x-www-form-urlencoded", `self=long&secret=1`, "form , form self"},
	} {
		w := do(m, "POST", "/"+c.query, c.media, c.body)
		p := problemOf(t, w.Header().Get("Content-Type"), w.Body.String())
		var got []string
		for _, f := range p.Errors {
			got = append(got, strings.TrimPrefix(f.In+" "+f.Parameter, " ")+f.Pointer)
		}
		if w.Code != 400 || strings.Join(got, ", ") != c.want || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%+v: %d %s", c, w.Code, w.Body)
		}
	}
}

func TestPatternsAreToldInWordsWhereThereAreSome(t *testing.T) {
	type in struct {
		A string   `query:"a" must:"be P and a digit" validate:"pattern=^P[0-9]$"`
		B []string `query:"b" must:"be P and a digit" validate:"pattern=^P[0-9]$"`
	}
	m := NewMux(Config{})
	check(t, m.Add(New("GET", "/", func(context.Context, in) (Empty, error) { return Empty{}, nil })))
	w := do(m, "GET", "/?a=x&b=x", "", "")
	p := problemOf(t, w.Header().Get("Content-Type"), w.Body.String())
	if len(p.Errors) != 2 || p.Errors[0].Detail != "must be P and a digit" || p.Errors[1].Detail != "each must be P and a digit" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
