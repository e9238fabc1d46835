package route

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"
)

// everything has a field of every source and of every type.
type everything struct {
	ID    string           `path:"id"`
	Page  Optional[int64]  `query:"page" validate:"min=1"`
	Sizes []uint16         `query:"size"`
	Since time.Duration    `query:"since" default:"1h"`
	Match string           `header:"if-match"`
	Name  string           `json:"name" form:"name" xml:"name" validate:"required,max=5"`
	Age   *int8            `json:"age" form:"age" xml:"age" validate:"min=0"`
	Rate  float64          `json:"rate" form:"rate" xml:"rate,attr"`
	On    bool             `json:"on" form:"on" xml:"on"`
	Born  time.Time        `json:"born" form:"born" xml:"born"`
	Tags  []string         `json:"tags" form:"tags" xml:"tag" validate:"max=2"`
	Home  address          `json:"home" xml:"home"`
	Maybe Optional[bool]   `json:"maybe" form:"maybe" xml:"maybe"`
	Extra map[string]int64 `json:"extra"`
	Blob  []byte           `json:"blob"`
	File  Upload           `form:"file"`
	Text  string           `body:"text" validate:"max=9"`
	Free  json.RawMessage  `json:"free"`
}

type address struct {
	City string     `json:"city" xml:"city" validate:"required"`
	Zip  string     `json:"zip,omitempty" xml:"zip" validate:"pattern=^[0-9]{5}$"`
	Next []*address `json:"next" xml:"next"`
}

// lines stands for YAML: name and city on two lines.
var lines = map[string]codec{"application/x-lines": func(body []byte) ([]byte, error) {
	name, city, found := strings.Cut(string(body), "\n")
	if !found {
		return nil, fmt.Errorf("one line")
	}
	return fmt.Appendf(nil, `{"name":%q,"home":{"city":%q}}`, name, city), nil
}}

// capture serves one route and keeps the request that its function got.
type capture[Req any] struct {
	http.Handler
	got   Req
	calls int
}

func serving[Req any](t testing.TB, r func(f func(context.Context, Req) (Empty, error)) *Route, cfg Config) *capture[Req] {
	t.Helper()
	c := &capture[Req]{}
	m := NewMux(cfg)
	check(t, m.Add(r(func(_ context.Context, req Req) (Empty, error) { c.got, c.calls = req, c.calls+1; return Empty{}, nil })))
	c.Handler = m
	return c
}

func everywhere(t testing.TB) *capture[everything] {
	return serving(t, func(f func(context.Context, everything) (Empty, error)) *Route { return New("POST", "/x/{id}", f) },
		Config{Codecs: lines})
}

func do(h http.Handler, method, target, media, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if media != "" {
		r.Header.Set("Content-Type", media)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func multiparted(parts ...string) (media, body string) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i+1 < len(parts); i += 2 {
		if name, file := strings.CutPrefix(parts[i], "@"); file {
			part, _ := w.CreateFormFile(name, name+".png")
			_, _ = io.WriteString(part, parts[i+1])
		} else {
			_ = w.WriteField(parts[i], parts[i+1])
		}
	}
	_ = w.Close()
	return w.FormDataContentType(), b.String()
}

func TestEverySourceIsBound(t *testing.T) {
	born := time.Date(1815, 12, 10, 0, 0, 0, 0, time.UTC)
	age := int8(36)
	params := everything{ID: "a/b", Page: some[int64](2), Sizes: []uint16{1, 255}, Since: time.Hour, Match: `"7"`}
	with := func(set func(*everything)) everything { e := params; set(&e); return e }
	all := func(e *everything) {
		e.Name, e.Age, e.Rate, e.On, e.Born, e.Tags, e.Maybe = "Ada", &age, 1.5, true, born, []string{"a", "b"}, some(false)
	}
	multiMedia, multi := multiparted("name", "Ada", "age", "36", "rate", "1.5", "on", "true", "born", "1815-12-10T00:00:00Z",
		"tags", "a", "tags", "b", "maybe", "false", "@file", "\x89PNG")
	for _, c := range []struct {
		name, media, body string
		want              everything
	}{
		{"json", "application/json", `{"name":"Ada","age":36,"rate":1.5,"on":true,"born":"1815-12-10T00:00:00Z","tags":["a","b"],
			"home":{"city":"London","next":[{"city":"Ockham"}]},"maybe":false,"extra":{"x":1},"blob":"AQI=","free":[1, {}]}`,
			with(func(e *everything) {
				all(e)
				e.Home = address{City: "London", Next: []*address{{City: "Ockham"}}}
				e.Extra, e.Blob, e.Free = map[string]int64{"x": 1}, []byte{1, 2}, json.RawMessage(`[1, {}]`)
			})},
		{"json with charset", "application/json; charset=UTF-8", `{"name":"Ada","home":{"city":"London"}}`,
			with(func(e *everything) { e.Name, e.Home.City = "Ada", "London" })},
		{"json, null where it may be", "application/json", `{"name":"Ada","age":null,"tags":null,"home":{"city":"London"}}`,
			with(func(e *everything) { e.Name, e.Home.City = "Ada", "London" })},
		{"urlencoded", "application/x-www-form-urlencoded", "name=A%64a&age=36&rate=1.5&on=true&born=1815-12-10T00%3A00%3A00Z&tags=a&tags=b&maybe=false&",
			with(all)},
		{"multipart", multiMedia, multi,
			with(func(e *everything) {
				all(e)
				e.File = Upload{Name: "file.png", ContentType: "application/octet-stream", Content: []byte("\x89PNG")}
			})},
		{"xml", "application/xml", `<?xml version="1.0"?><p rate="1.5"><name>Ada</name><age>36</age><on>true</on><born>1815-12-10T00:00:00Z</born>
			<tag>a</tag><tag>b</tag><maybe>false</maybe><home><city>London</city><next><city>Ockham</city></next></home></p>`,
			with(func(e *everything) { all(e); e.Home = address{City: "London", Next: []*address{{City: "Ockham"}}} })},
		{"text", "text/plain; charset=utf-8", "read me", with(func(e *everything) { e.Text = "read me" })},
		{"codec", "application/x-lines", "Ada\nLondon", with(func(e *everything) { e.Name, e.Home.City = "Ada", "London" })},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := everywhere(t)
			w := do(s, "POST", "/x/a%2Fb?page=2&size=1&size=255", c.media, c.body, "If-Match", `"7"`)
			if w.Code != http.StatusNoContent {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			if !reflect.DeepEqual(s.got, c.want) {
				t.Errorf("\n got %+v\nwant %+v", s.got, c.want)
			}
		})
	}
}

func TestAbsentIsToldFromZero(t *testing.T) {
	type patch struct {
		Name  Optional[string]  `json:"name" form:"name"`
		Note  Optional[*string] `json:"note"`
		Count *int              `json:"count" form:"count" validate:"required"`
		Plain int               `json:"plain" validate:"min=1"`
		Must  bool              `json:"must" validate:"required"`
	}
	s := serving(t, func(f func(context.Context, patch) (Empty, error)) *Route { return New("PATCH", "/", f) }, Config{})
	zero := 0
	for body, want := range map[string]patch{
		`{"count":0,"must":false}`:                       {Count: &zero},
		`{"count":0,"must":false,"name":"","note":null}`: {Count: &zero, Name: some(""), Note: some[*string](nil)},
	} {
		if w := do(s, "PATCH", "/", "application/json", body); w.Code != 204 || !reflect.DeepEqual(s.got, want) {
			t.Errorf("%s: %d %s\n%+v", body, w.Code, w.Body, s.got)
		}
	}
	for body, want := range map[string]string{
		`{"must":false}`:                         `[{"detail":"is required","pointer":"#/count"}]`,
		`{"count":0}`:                            `[{"detail":"is required","pointer":"#/must"}]`,
		`{"count":0,"must":false,"plain":0}`:     `[{"detail":"must be at least 1","pointer":"#/plain"}]`,
		`{"count":null,"must":null,"name":null}`: `[{"detail":"is required","pointer":"#/count"},{"detail":"must not be null","pointer":"#/must"},{"detail":"must not be null","pointer":"#/name"}]`,
	} {
		if w := do(s, "PATCH", "/", "application/json", body); w.Code != 400 || !strings.Contains(w.Body.String(), `"errors":`+want) {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
}

// A body could once set a path field: encoding/json matches untagged fields by their Go names.
func TestNoBodyCanSetWhatComesFromElsewhere(t *testing.T) {
	type update struct {
		Owner string `path:"owner"`
		Admin bool   `header:"X-Admin"`
		Name  string `json:"name" xml:"name"`
	}
	for _, lax := range []bool{false, true} {
		s := serving(t, func(f func(context.Context, update) (Empty, error)) *Route {
			r := New("PUT", "/{owner}", f)
			if lax {
				r.AllowUnknown()
			}
			return r
		}, Config{})
		for media, bodies := range map[string][]string{
			"application/json": {`{"name":"a","Owner":"me"}`, `{"name":"a","Admin":true}`, `{"name":"a","\u0041dmin":true}`, `{"name":"a","Admin":false}`},
			"application/xml":  {`<x><name>a</name><Owner>me</Owner></x>`, `<x><name>a</name><Admin>true</Admin></x>`},
		} {
			for _, body := range bodies {
				s.got = update{}
				w := do(s, "PUT", "/you", media, body)
				want, code := update{}, 400
				if lax {
					want, code = update{Owner: "you", Name: "a"}, 204
				}
				if w.Code != code || s.got != want {
					t.Errorf("lax %t, %s: %d %s, bound %+v", lax, body, w.Code, w.Body, s.got)
				}
			}
		}
	}
}

type both struct {
	Low  int `json:"low"`
	High int `json:"high"`
}

func (b both) Validate() error {
	if b.Low > b.High {
		return &InvalidError{Faults: []Fault{{Pointer: "#/high", Detail: "must not be less than low"}}}
	}
	return nil
}

func TestValidateComesAfterTheRules(t *testing.T) {
	s := serving(t, func(f func(context.Context, both) (Empty, error)) *Route { return New("POST", "/", f) }, Config{})
	if w := do(s, "POST", "/", "application/json", `{"low":2,"high":1}`); w.Code != 400 || !strings.Contains(w.Body.String(), "not be less than low") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := do(s, "POST", "/", "application/json", `{"low":1,"high":1}`); w.Code != 204 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestWrongTypesAreErrorsThatNameTheField(t *testing.T) {
	check := func(r *Route, want string) {
		t.Helper()
		if err := NewMux(Config{}).Add(r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	check(New("GET", "/", func(context.Context, int) (Empty, error) { return Empty{}, nil }), "int is no struct")
	check(New("GET", "/", func(context.Context, struct{ A string }) (Empty, error) { return Empty{}, nil }), "field A: says nowhere")
	check(New("GET", "/", func(context.Context, struct {
		A string `path:"a"`
	}) (Empty, error) {
		return Empty{}, nil
	}), "field A: pattern / has no {a}")
	check(New("GET", "/{b}", func(context.Context, Empty) (Empty, error) { return Empty{}, nil }), "no field comes from {b}")
	check(New("GET", "/", func(context.Context, struct {
		A string `query:"a" json:"a"`
	}) (Empty, error) {
		return Empty{}, nil
	}), "field A: comes from more than one source: query, json")
	check(New("GET", "/", func(context.Context, struct {
		A chan int `query:"a"`
	}) (Empty, error) {
		return Empty{}, nil
	}), "field A: type chan int is not supported")
	check(New("POST", "/", func(context.Context, struct {
		A struct {
			B io.Reader `json:"b"`
		} `json:"a"`
	}) (Empty, error) {
		return Empty{}, nil
	}), "field A: field B: nothing can be decoded into interface io.Reader")
	check(New("POST", "/", func(context.Context, struct {
		A string `json:"a" validate:"requird"`
	}) (Empty, error) {
		return Empty{}, nil
	}), `field A: rule "requird"`)
	check(New("POST", "/", func(context.Context, struct {
		A int `query:"a" default:"x"`
	}) (Empty, error) {
		return Empty{}, nil
	}), `field A: default "x": must be a whole number`)
	check(New("GET", "/", func(context.Context, Empty) (func(), error) { return nil, nil }), "response type func() cannot be encoded")
	check(New("GET", "/", func(context.Context, Empty) (Empty, error) { return Empty{}, nil }).Limits(Limits{Depth: -1}), "limit Depth is negative")
	check(New("GET", "no-slash", func(context.Context, Empty) (Empty, error) { return Empty{}, nil }), "route GET no-slash")
	check(New[Empty, Empty]("GET", "/", nil), "no function")
}

func TestNullIsAsGoodAsAbsent(t *testing.T) {
	type in struct {
		List []int          `json:"list" validate:"required,min=1"`
		Free []int          `json:"free" validate:"min=1"`
		Map  map[string]int `json:"map" validate:"min=1"`
		Num  *int           `json:"num" validate:"min=1"`
	}
	s := serving(t, func(f func(context.Context, in) (Empty, error)) *Route { return New("POST", "/", f) }, Config{})
	for body, want := range map[string]string{
		`{"list":[1],"free":null,"map":null,"num":null}`: ``,
		`{"list":null}`:                     `"is required","pointer":"#/list"`,
		`{}`:                                `"is required","pointer":"#/list"`,
		`{"list":[],"free":[],"map":{}}`:    `"must have at least 1 elements","pointer":"#/list"},{"detail":"must have at least 1 elements","pointer":"#/free"},{"detail":"must have at least 1 elements","pointer":"#/map"`,
		`{"list":[1],"free":null,"map":{}}`: `[{"detail":"must have at least 1 elements","pointer":"#/map"}]`,
	} {
		w := do(s, "POST", "/", "application/json", body)
		if code := map[bool]int{true: 204, false: 400}[want == ""]; w.Code != code || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
}

// must returns v, and panics if there is an error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// check ends the test if there is an error.
func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
