package routegin_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/spillway-go/spillway/route"
	"github.com/spillway-go/spillway/routegin"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	os.Exit(m.Run())
}

// serve registers routes on a new engine, in no group.
func serve(t testing.TB, routes ...*routegin.Route) *gin.Engine {
	t.Helper()
	engine := gin.New()
	register(t, engine, routes...)
	return engine
}

func register(t testing.TB, to routegin.Router, routes ...*routegin.Route) {
	t.Helper()
	check(t, routegin.NewAPI(route.Config{}).Register(to, routes...))
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

type everything struct {
	ID    string              `path:"id"`
	Page  route.Optional[int] `query:"page" validate:"min=1"`
	Match string              `header:"If-Match"`
	Name  string              `json:"name" form:"name" xml:"name" validate:"max=5"`
	Tags  []string            `json:"tags" form:"tags" xml:"tag"`
	Photo route.Upload        `form:"photo"`
	Text  string              `body:"text"`
}

// upper stands for a codec of the user.
func upper(body []byte) ([]byte, error) {
	return fmt.Appendf(nil, `{"name":%q}`, bytes.ToUpper(body)), nil
}

func multiparted() (media, body string) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	_ = w.WriteField("name", "Ada")
	part, _ := w.CreateFormFile("photo", "ada.png")
	_, _ = io.WriteString(part, "png")
	_ = w.Close()
	return w.FormDataContentType(), b.String()
}

func TestEverySourceIsBound(t *testing.T) {
	var got everything
	engine := gin.New()
	check(t, routegin.NewAPI(route.Config{Codecs: map[string]func([]byte) ([]byte, error){"application/x-upper": upper}}).Register(engine,
		routegin.New("POST", "/x/:id", func(_ *routegin.Context, req everything) (route.Empty, error) {
			got = req
			return route.Empty{}, nil
		})))
	multiMedia, multi := multiparted()
	for _, c := range []struct {
		media, body string
		status      int
		set         func(*everything)
	}{
		{"application/json", `{"name":"Ada","tags":["a","b"]}`, 204, func(e *everything) { e.Name, e.Tags = "Ada", []string{"a", "b"} }},
		{"text/xml; charset=utf-8", `<x><name>Ada</name><tag>a</tag></x>`, 204, func(e *everything) { e.Name, e.Tags = "Ada", []string{"a"} }},
		{"application/x-www-form-urlencoded", `name=Ada&tags=a&tags=b`, 204, func(e *everything) { e.Name, e.Tags = "Ada", []string{"a", "b"} }},
		{multiMedia, multi, 204, func(e *everything) {
			e.Name, e.Photo = "Ada", route.Upload{Name: "ada.png", ContentType: "application/octet-stream", Content: []byte("png")}
		}},
		{"text/plain", "hello", 204, func(e *everything) { e.Text = "hello" }},
		{"application/x-upper", "ada", 204, func(e *everything) { e.Name = "ADA" }},
		{"application/toml", `name = "Ada"`, http.StatusUnsupportedMediaType, nil},
		{"", `{"name":"Ada"}`, http.StatusBadRequest, nil},
	} {
		got = everything{}
		w := do(engine, "POST", "/x/7?page=2", c.media, c.body, "If-Match", `"3"`)
		var want everything
		if c.set != nil {
			want = everything{ID: "7", Page: route.Optional[int]{Value: 2, Set: true}, Match: `"3"`}
			c.set(&want)
		}
		if w.Code != c.status || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %d %s %+v", c.media, w.Code, w.Body, got)
		}
		if timing := w.Header().Get("Server-Timing"); !strings.HasPrefix(timing, "decode;dur=") {
			t.Errorf("%s: Server-Timing %q", c.media, timing)
		}
	}
}

func TestEveryFaultIsListedAtOnce(t *testing.T) {
	engine := serve(t, routegin.New("POST", "/x/:id", func(_ *routegin.Context, _ everything) (route.Empty, error) {
		return route.Empty{}, nil
	}))
	w := do(engine, "POST", "/x/7?page=0&colour=red", "application/json", `{"name":"Augusta","nmae":1}`)
	if w.Code != 400 || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Fatal(w.Code, w.Header())
	}
	for _, fault := range []string{`"pointer":"#/name"`, `"pointer":"#/nmae"`, `"parameter":"page","in":"query"`, `"parameter":"colour","in":"query"`} {
		if !strings.Contains(w.Body.String(), fault) {
			t.Errorf("no %s in %s", fault, w.Body)
		}
	}
}

type teapot struct {
	Kind string `json:"kind"`
}

func answering[Res any](res Res) *gin.Engine {
	engine := gin.New()
	err := routegin.NewAPI(route.Config{}).Register(engine, routegin.New("GET", "/", func(*routegin.Context, route.Empty) (Res, error) {
		return res, nil
	}).Status(http.StatusOK))
	if err != nil {
		panic(err)
	}
	return engine
}

func TestResponsesDescribeThemselves(t *testing.T) {
	content := func() route.File {
		return route.File{Name: "a.txt", ETag: `"1"`, Modified: time.Unix(1, 0), Content: strings.NewReader("0123456789")}
	}
	for _, c := range []struct {
		name   string
		engine *gin.Engine
		header []string
		status int
		body   string
		want   map[string]string
	}{
		{"status and header of the response", answering(route.Response[teapot]{Code: http.StatusTeapot, Header: http.Header{"X-Kind": {"black"}}, Body: teapot{"tea"}}), nil, 418, `{"kind":"tea"}`, map[string]string{"X-Kind": "black", "Content-Type": "application/json"}},
		{"Response", answering(route.Response[int]{Code: 202, Header: http.Header{"X-A": {"b"}}, Body: 7}), nil, 202, `7`, map[string]string{"X-A": "b"}},
		{"file", answering(content()), nil, 200, "0123456789", map[string]string{"Content-Disposition": "attachment; filename=a.txt", "Content-Length": "10"}},
		{"range of a file", answering(content()), []string{"Range", "bytes=2-4"}, 206, "234", map[string]string{"Content-Range": "bytes 2-4/10"}},
		{"unchanged file", answering(content()), []string{"If-None-Match", `"1"`}, 304, "", nil},
		{"stream", answering(route.Stream{ContentType: "text/csv", Write: func(w io.Writer) error {
			_, err := io.WriteString(w, "a,b")
			return err
		}}), nil, 200, "a,b", map[string]string{"Content-Type": "text/csv"}},
		{"stream that fails before its first byte", answering(route.Stream{Write: func(io.Writer) error {
			return &route.Problem{Status: http.StatusConflict}
		}}), nil, 409, `{"title":"Conflict","status":409}`, nil},
		{"empty", answering(route.Response[route.Empty]{Code: 205}), nil, 205, "", nil},
	} {
		w := do(c.engine, "GET", "/", "", "", c.header...)
		if w.Code != c.status || strings.TrimSpace(w.Body.String()) != c.body {
			t.Errorf("%s: %d %q", c.name, w.Code, w.Body)
		}
		for name, want := range c.want {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s: %s %q", c.name, name, got)
			}
		}
	}
}

var errGone = errors.New("gone")

func TestErrorsBecomeProblemsByRuleAndAreKnownToGin(t *testing.T) {
	var seen []error
	engine := gin.New()
	engine.Use(func(g *gin.Context) {
		g.Next()
		for _, e := range g.Errors {
			seen = append(seen, e.Err)
		}
	})
	api := routegin.NewAPI(route.Config{Errors: route.Errors{route.Is(errGone, route.Problem{Status: http.StatusGone})}})
	check(t, api.Register(engine, routegin.New("GET", "/", func(*routegin.Context, route.Empty) (int, error) { return 0, errGone })))
	if w := do(engine, "GET", "/", "", ""); w.Code != http.StatusGone || len(seen) != 1 || seen[0] != errGone {
		t.Errorf("%d %v", w.Code, seen)
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
