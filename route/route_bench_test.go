package route

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/route/internal/syntax"
)

// In every row a patient is created from a body of some 200 bytes with every field checked, or looked
// up by id. Request and response writer are reused. The row "harness" is their cost: subtract it.

type benchCreate struct {
	Name   string   `json:"name" form:"name" validate:"required,min=2,max=80"`
	Email  string   `json:"email" form:"email" validate:"required,format=email"`
	Gender string   `json:"gender" form:"gender" validate:"required,enum=female|male|other|unknown"`
	Age    int      `json:"age" form:"age" validate:"required,min=1,max=150"`
	Phone  string   `json:"phone" form:"phone" validate:"pattern=^[+0-9 ]{5,20}$"`
	Tags   []string `json:"tags" form:"tags" validate:"max=8"`
}

type benchPatient struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Email  string `json:"email"`
	Gender string `json:"gender"`
	Age    int    `json:"age"`
}

type benchGet struct {
	ID string `path:"id" validate:"len=7"`
}

const benchJSON = `{"name":"Augusta Ada King","email":"ada.king@example.org","gender":"female","age":36,"phone":"+44 20 7946 0958","tags":["vip","allergy:penicillin"]}`

const benchForm = `name=Augusta+Ada+King&email=ada.king%40example.org&gender=female&age=36&phone=%2B44+20+7946+0958&tags=vip&tags=allergy%3Apenicillin`

// harness is a reusable request and response writer.
type harness struct {
	request *http.Request
	reader  bytes.Reader
	body    []byte
	header  http.Header
	status  int
	written int
}

func newHarness(method, target, contentType, body string) *harness {
	u, err := url.Parse(target)
	if err != nil {
		panic(err)
	}
	h := &harness{body: []byte(body), header: http.Header{}}
	h.request = &http.Request{Method: method, URL: u, Host: "example.org", Header: http.Header{}, ContentLength: int64(len(body)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	h.request = h.request.WithContext(context.Background())
	h.request.Body = http.NoBody
	if body != "" {
		h.request.Header.Set("Content-Type", contentType)
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
	handler.ServeHTTP(h, h.request)
}

func createByType(_ context.Context, req benchCreate) (benchPatient, error) {
	return benchPatient{"P000042", req.Name, req.Email, req.Gender, req.Age}, nil
}

func getByType(_ context.Context, req benchGet) (benchPatient, error) {
	return benchPatient{req.ID, "Augusta Ada King", "ada.king@example.org", "female", 36}, nil
}

func typed(routes ...*Route) http.Handler { return served(Config{Untimed: true}, routes...) }

func served(cfg Config, routes ...*Route) http.Handler {
	m := NewMux(cfg)
	if err := m.Add(routes...); err != nil {
		panic(err)
	}
	return m
}

func byHand(pattern string, f http.HandlerFunc) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(pattern, f)
	return mux
}

var phone = regexp.MustCompile(`^[+0-9 ]{5,20}$`)

func checkByHand(p *benchCreate) bool {
	return len(p.Name) >= 2 && len(p.Name) <= 80 && syntax.Formats["email"](p.Email) &&
		(p.Gender == "female" || p.Gender == "male" || p.Gender == "other" || p.Gender == "unknown") &&
		p.Age >= 1 && p.Age <= 150 && phone.MatchString(p.Phone) && len(p.Tags) <= 8
}

var (
	getByHand = byHand("GET /patients/{id}", func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		if len(id) != 7 {
			http.Error(w, "bad id", http.StatusBadRequest)
			return
		}
		answerByHand(w, &benchPatient{id, "Augusta Ada King", "ada.king@example.org", "female", 36})
	})
	jsonByHand = byHand("POST /patients", func(w http.ResponseWriter, r *http.Request) {
		var p benchCreate
		if r.Header.Get("Content-Type") != "application/json" || decodeByHand(w, r, &p) != nil || !checkByHand(&p) {
			http.Error(w, "bad patient", http.StatusBadRequest)
			return
		}
		answerByHand(w, &benchPatient{"P000042", p.Name, p.Email, p.Gender, p.Age})
	})
	formByHand = byHand("POST /patients", func(w http.ResponseWriter, r *http.Request) {
		defer func(body io.ReadCloser) { r.Body, r.Form, r.PostForm = body, nil, nil }(r.Body) // for the next run
		r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
		if r.ParseForm() != nil {
			http.Error(w, "bad form", http.StatusBadRequest)
			return
		}
		age, err := strconv.Atoi(r.PostForm.Get("age"))
		p := benchCreate{Name: r.PostForm.Get("name"), Email: r.PostForm.Get("email"), Gender: r.PostForm.Get("gender"),
			Age: age, Phone: r.PostForm.Get("phone"), Tags: r.PostForm["tags"]}
		if err != nil || !checkByHand(&p) {
			http.Error(w, "bad patient", http.StatusBadRequest)
			return
		}
		answerByHand(w, &benchPatient{"P000042", p.Name, p.Email, p.Gender, p.Age})
	})
)

func typedGet() *Route  { return New("GET", "/patients/{id}", getByType) }
func typedPost() *Route { return New("POST", "/patients", createByType) }

func large() string {
	return strings.Replace(benchJSON, `"vip"`, `"`+strings.Repeat("x", 500)+`"`, 1)
}

func BenchmarkRoute(b *testing.B) {
	for _, c := range []struct {
		name    string
		handler http.Handler
		method  string
		target  string
		media   string
		body    string
	}{
		{name: "harness", handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), method: "POST", target: "/patients", media: "application/json", body: benchJSON},
		{name: "get/hand", handler: getByHand, method: "GET", target: "/patients/P000042"},
		{name: "get/typed", handler: typed(typedGet()), method: "GET", target: "/patients/P000042"},
		{name: "get/typed-timed", handler: served(Config{}, typedGet()), method: "GET", target: "/patients/P000042"},
		{name: "json/hand", handler: jsonByHand, method: "POST", target: "/patients", media: "application/json", body: benchJSON},
		{name: "json/typed", handler: typed(typedPost()), method: "POST", target: "/patients", media: "application/json", body: benchJSON},
		{name: "json/typed-timed", handler: served(Config{}, typedPost()), method: "POST", target: "/patients", media: "application/json", body: benchJSON},
		{name: "large/hand", handler: jsonByHand, method: "POST", target: "/patients", media: "application/json", body: large()},
		{name: "large/typed", handler: typed(typedPost()), method: "POST", target: "/patients", media: "application/json", body: large()},
		{name: "form/hand", handler: formByHand, method: "POST", target: "/patients", media: "application/x-www-form-urlencoded", body: benchForm},
		{name: "form/typed", handler: typed(typedPost()), method: "POST", target: "/patients", media: "application/x-www-form-urlencoded", body: benchForm},
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
