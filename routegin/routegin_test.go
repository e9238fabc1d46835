package routegin_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

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

type teapot struct {
	Kind string `json:"kind"`
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
