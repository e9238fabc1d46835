package routegin_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/spillway-go/spillway/route"
	"github.com/spillway-go/spillway/routegin"
)

// In every row a patient is created from a body of some 200 bytes with every field checked, or looked
// up by id. Rows "hand" use gin's own binding and rules; rows "typed" use package routegin. Request
// and response writer are reused. The row "harness" is the cost of the request, the response writer
// and gin's router: subtract it.

type handCreate struct {
	Name   string   `json:"name" form:"name" binding:"required,min=2,max=80"`
	Email  string   `json:"email" form:"email" binding:"required,email"`
	Gender string   `json:"gender" form:"gender" binding:"required,oneof=female male other unknown"`
	Age    int      `json:"age" form:"age" binding:"required,min=1,max=150"`
	Phone  string   `json:"phone" form:"phone" binding:"omitempty,min=5,max=20"`
	Tags   []string `json:"tags" form:"tags" binding:"max=8"`
}

type typedCreate struct {
	Name   string   `json:"name" form:"name" validate:"required,min=2,max=80"`
	Email  string   `json:"email" form:"email" validate:"required,format=email"`
	Gender string   `json:"gender" form:"gender" validate:"required,enum=female|male|other|unknown"`
	Age    int      `json:"age" form:"age" validate:"required,min=1,max=150"`
	Phone  string   `json:"phone" form:"phone" validate:"min=5,max=20"`
	Tags   []string `json:"tags" form:"tags" validate:"max=8"`
}

type benchPatient struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Email  string `json:"email"`
	Gender string `json:"gender"`
	Age    int    `json:"age"`
}

const benchJSON = `{"name":"Augusta Ada King","email":"ada.king@example.org","gender":"female","age":36,"phone":"+44 20 7946 0958","tags":["vip","allergy:penicillin"]}`

const benchForm = `name=Augusta+Ada+King&email=ada.king%40example.org&gender=female&age=36&phone=%2B44+20+7946+0958&tags=vip&tags=allergy%3Apenicillin`

func handPost(g *gin.Context) {
	var p handCreate
	if err := g.ShouldBind(&p); err != nil {
		g.AbortWithStatusJSON(http.StatusBadRequest, gin.H{"error": err.Error()})
		return
	}
	g.JSON(http.StatusOK, benchPatient{"P000042", p.Name, p.Email, p.Gender, p.Age})
}

func handGet(g *gin.Context) {
	id := g.Param("id")
	if len(id) != 7 {
		g.AbortWithStatusJSON(http.StatusBadRequest, gin.H{"error": "bad id"})
		return
	}
	g.JSON(http.StatusOK, benchPatient{id, "Augusta Ada King", "ada.king@example.org", "female", 36})
}

func typedPost() *routegin.Route {
	return routegin.New("POST", "/patients", func(_ *routegin.Context, req typedCreate) (benchPatient, error) {
		return benchPatient{"P000042", req.Name, req.Email, req.Gender, req.Age}, nil
	})
}

func typedGet() *routegin.Route {
	return routegin.New("GET", "/patients/:id", func(_ *routegin.Context, req struct {
		ID string `path:"id" validate:"len=7"`
	}) (benchPatient, error) {
		return benchPatient{req.ID, "Augusta Ada King", "ada.king@example.org", "female", 36}, nil
	})
}

// untimed serves a route without Server-Timing.
func untimed(t testing.TB, r *routegin.Route) http.Handler {
	engine := gin.New()
	check(t, routegin.NewAPI(route.Config{Untimed: true}).Register(engine, r))
	return engine
}

func byHand(method, path string, h gin.HandlerFunc) http.Handler {
	engine := gin.New()
	engine.Handle(method, path, h)
	return engine
}

// harness is a reusable request and response writer.
type harness struct {
	request         *http.Request
	reader          bytes.Reader
	body            []byte
	header          http.Header
	status, written int
}

func newHarness(method, target, media, body string) *harness {
	u, err := url.Parse(target)
	if err != nil {
		panic(err)
	}
	h := &harness{body: []byte(body), header: http.Header{}}
	r := &http.Request{Method: method, URL: u, Host: "example.org", Header: http.Header{}, ContentLength: int64(len(body)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	h.request = r.WithContext(context.Background())
	h.request.Body = http.NoBody
	if body != "" {
		h.request.Header.Set("Content-Type", media)
		h.request.Body = struct {
			io.Reader
			io.Closer
		}{&h.reader, io.NopCloser(nil)}
	}
	return h
}

func (h *harness) Header() http.Header         { return h.header }
func (h *harness) WriteHeader(code int)        { h.status = code }
func (h *harness) Write(b []byte) (int, error) { h.written += len(b); return len(b), nil }

func (h *harness) run(handler http.Handler) {
	h.status, h.written = 200, 0
	clear(h.header)
	h.reader.Reset(h.body)
	h.request.Form, h.request.PostForm, h.request.MultipartForm = nil, nil, nil // a request by hand keeps its parsed form
	handler.ServeHTTP(h, h.request)
}

func BenchmarkGin(b *testing.B) {
	const media, form = "application/json", "application/x-www-form-urlencoded"
	large := strings.Replace(benchJSON, `"vip"`, `"`+strings.Repeat("x", 500)+`"`, 1)
	hand, typed, timed := byHand("POST", "/patients", handPost), untimed(b, typedPost()), serve(b, typedPost())
	for _, c := range []struct {
		name                        string
		handler                     http.Handler
		method, target, media, body string
	}{
		{"harness", byHand("POST", "/patients", func(*gin.Context) {}), "POST", "/patients", media, benchJSON},
		{"get/hand", byHand("GET", "/patients/:id", handGet), "GET", "/patients/P000042", "", ""},
		{"get/typed", untimed(b, typedGet()), "GET", "/patients/P000042", "", ""},
		{"get/typed-timed", serve(b, typedGet()), "GET", "/patients/P000042", "", ""},
		{"json/hand", hand, "POST", "/patients", media, benchJSON},
		{"json/typed", typed, "POST", "/patients", media, benchJSON},
		{"json/typed-timed", timed, "POST", "/patients", media, benchJSON},
		{"large/hand", hand, "POST", "/patients", media, large},
		{"large/typed", typed, "POST", "/patients", media, large},
		{"form/hand", hand, "POST", "/patients", form, benchForm},
		{"form/typed", typed, "POST", "/patients", form, benchForm},
	} {
		b.Run(c.name, func(b *testing.B) {
			h := newHarness(c.method, c.target, c.media, c.body)
			b.ReportAllocs()
			for b.Loop() {
				h.run(c.handler)
			}
			if h.status != 200 || h.written == 0 && c.name != "harness" {
				b.Fatal(h.status)
			}
		})
	}
}

// Compared to the same route of package route, whose request already has its path values, gin adds
// one allocation: the Context, which handlers may keep. The request is not copied.
func TestAllocationsPerRequest(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates, and makes pools drop objects")
	}
	post, get := untimed(t, typedPost()), untimed(t, typedGet())
	for _, c := range []struct {
		name    string
		handler http.Handler
		request *harness
		want    float64
	}{
		{"get", get, newHarness("GET", "/patients/P000042", "", ""), 1},
		{"json", post, newHarness("POST", "/patients", "application/json", benchJSON), 3},
		{"form", post, newHarness("POST", "/patients", "application/x-www-form-urlencoded", benchForm), 3},
	} {
		got := testing.AllocsPerRun(200, func() { c.request.run(c.handler) })
		if c.request.status != 200 || got != c.want {
			t.Errorf("%s: status %d, %v allocations, want %v", c.name, c.request.status, got, c.want)
		}
	}
}
