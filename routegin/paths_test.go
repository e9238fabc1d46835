package routegin_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/spillway-go/spillway/route"
	"github.com/spillway-go/spillway/routegin"
)

type deep struct {
	Tenant string `path:"tenant"`
	Rest   string `path:"rest" validate:"pattern=^[a-z/]*$"`
}

func TestPrefixesOfGroupsAreBoundAndARestHasNoSlash(t *testing.T) {
	var got deep
	engine := gin.New()
	register(t, engine.Group("/v1").Group("/:tenant"), routegin.New("GET", "/files/*rest", func(_ *routegin.Context, req deep) (route.Empty, error) {
		got = req
		return route.Empty{}, nil
	}))
	if w := do(engine, "GET", "/v1/acme/files/a/b", "", ""); w.Code != 204 || got != (deep{"acme", "a/b"}) {
		t.Errorf("%d %+v %s", w.Code, got, w.Body)
	}
	if w := do(engine, "GET", "/v1/acme/files/", "", ""); w.Code != 204 || got != (deep{"acme", ""}) {
		t.Errorf("%d %+v %s", w.Code, got, w.Body)
	}
}

func TestOneRouteMayStandInSeveralGroups(t *testing.T) {
	where := routegin.New("GET", "/where", func(c *routegin.Context, _ route.Empty) (string, error) { return c.Request.URL.Path, nil })
	engine, api := gin.New(), routegin.NewAPI(route.Config{})
	for _, group := range []string{"/v1", "/v2/"} {
		check(t, api.Register(engine.Group(group), where))
	}
	for _, path := range []string{"/v1/where", "/v2/where"} {
		if w := do(engine, "GET", path, "", ""); strings.TrimSpace(w.Body.String()) != `"`+path+`"` {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if doc, err := api.OpenAPI(route.Info{}); err != nil || !bytes.Contains(doc, []byte("/v1/where")) || !bytes.Contains(doc, []byte("/v2/where")) {
		t.Errorf("%v\n%s", err, doc)
	}
}

func TestColonsThatAreMeantAndParametersWithinASegment(t *testing.T) {
	engine := serve(t,
		routegin.New("POST", `/patients\:merge`, func(*routegin.Context, route.Empty) (string, error) { return "merged", nil }),
		routegin.New("GET", "/cmd_:name", func(_ *routegin.Context, req struct {
			Name string `path:"name"`
		}) (string, error) {
			return req.Name, nil
		}),
	)
	for _, c := range [][3]string{{"GET", "/cmd_list", `"list"`}, {"POST", "/patients:merge", `"merged"`}} {
		if w := do(engine, c[0], c[1], "", ""); w.Code != 200 || strings.TrimSpace(w.Body.String()) != c[2] {
			t.Errorf("%s: %d %s", c[1], w.Code, w.Body)
		}
	}
}

func TestWhatIsWrongWithARouteIsAnErrorOfRegister(t *testing.T) {
	ok := func(*routegin.Context, route.Empty) (route.Empty, error) { return route.Empty{}, nil }
	engine := gin.New()
	api := routegin.NewAPI(route.Config{})
	err := api.Register(engine,
		routegin.New("GET", "/good", ok).Name("good"),
		routegin.New("GET", "/good", ok),
		routegin.New("GET", "/named", ok).Name("good"),
		routegin.New("GET", "/:id", ok),
		routegin.New("GET", "/{id}", ok),
		routegin.New("GET", "/a/:", ok),
		routegin.New("GET", "/b/:x:y", ok),
		routegin.New("GET", "/c/*x/y", func(*routegin.Context, struct {
			X string `path:"x"`
		}) (route.Empty, error) {
			return route.Empty{}, nil
		}),
		routegin.New[route.Empty, route.Empty]("GET", "/none", nil),
		routegin.New("get", "/lower", ok),
		routegin.New("GET", "/tag", func(*routegin.Context, struct{ Name string }) (route.Empty, error) { return route.Empty{}, nil }),
		routegin.New("GET", "/also", ok),
	)
	want := []string{
		"route GET /good: handlers are already registered for path '/good'",
		"route GET /named: another route is called good",
		"route GET /{id}: request type route.Empty: no field comes from {id}",
		"route GET /{id}: a path with braces cannot be described",
		"route GET /a/:: parameter :: a name has letters",
		"route GET /b/:x:y: parameter :x:y: a name has letters",
		"route GET /c/*x/y: catch-all routes are only allowed at the end of the path",
		"route GET /none: no function",
		"route get /lower: http method get is not valid",
		"field Name: says nowhere where it comes from",
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != len(want) {
		t.Errorf("%d errors, want %d:\n%v", len(lines), len(want), err)
	}
	for i := range min(len(lines), len(want)) {
		if !strings.Contains(lines[i], want[i]) {
			t.Errorf("%q, want %q", lines[i], want[i])
		}
	}
	for _, path := range []string{"/good", "/also"} {
		if w := do(engine, "GET", path, "", ""); w.Code != 204 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// Without gin's HandleMethodNotAllowed, gin answers 404 for another method.
func TestWhatNoRouteMatchesIsLeftToGin(t *testing.T) {
	engine := serve(t, routegin.New("POST", "/x", func(*routegin.Context, route.Empty) (route.Empty, error) { return route.Empty{}, nil }))
	if w := do(engine, "GET", "/y", "", ""); w.Code != 404 || w.Body.String() != "404 page not found" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := do(engine, "GET", "/x", "", ""); w.Code != 404 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	engine.HandleMethodNotAllowed = true
	if w := do(engine, "GET", "/x", "", ""); w.Code != 405 || w.Header().Get("Allow") != "POST" {
		t.Errorf("%d %s %v", w.Code, w.Body, w.Header())
	}
	engine.NoRoute(func(g *gin.Context) { g.String(http.StatusNotFound, "not here") })
	if w := do(engine, "GET", "/y", "", ""); w.Code != 404 || w.Body.String() != "not here" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestHeadIsARouteOfItsOwnAsGinHasIt(t *testing.T) {
	hello := func(*routegin.Context, route.Empty) (string, error) { return "hello", nil }
	engine := serve(t, routegin.New("GET", "/both", hello), routegin.New("HEAD", "/both", hello), routegin.New("GET", "/get", hello))
	server := httptest.NewServer(engine)
	defer server.Close()
	for path, want := range map[string]int{"/both": 200, "/get": 404} {
		resp := must(http.Head(server.URL + path))
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %s", path, resp.Status)
		}
	}
}

func TestARouteWithoutAMethodAnswersAll(t *testing.T) {
	engine := serve(t, routegin.New("", "/any", func(c *routegin.Context, _ route.Empty) (string, error) { return c.Request.Method, nil }))
	for _, method := range []string{"GET", "PUT", "DELETE", "OPTIONS"} {
		if w := do(engine, method, "/any", "", ""); strings.TrimSpace(w.Body.String()) != `"`+method+`"` {
			t.Errorf("%s: %d %s", method, w.Code, w.Body)
		}
	}
}

// The OpenAPI document equals the document of the same routes in a route.Mux.
func TestTheDocumentIsThatOfTheSameRoutesInAMux(t *testing.T) {
	info := route.Info{Title: "Files", Version: "1"}
	mux := route.NewMux(route.Config{})
	check(t, mux.Add(
		route.New("GET", "/v1/{tenant}/files/{rest...}", func(context.Context, deep) (teapot, error) { return teapot{}, nil }).Name("file").Describe("One file.").Answers(404, route.Answer{}),
		route.New("POST", "/v1/x/{id}", func(context.Context, everything) (route.Empty, error) { return route.Empty{}, nil }).Status(202).Tags("x"),
	))
	want := must(mux.OpenAPI(info))
	engine, api := gin.New(), routegin.NewAPI(route.Config{})
	if err := api.Register(engine.Group("/v1"),
		routegin.New("GET", "/:tenant/files/*rest", func(*routegin.Context, deep) (teapot, error) { return teapot{}, nil }).Name("file").
			With(func(r *route.Route) { r.Describe("One file.").Answers(404, route.Answer{}) }),
		routegin.New("POST", "/x/:id", func(*routegin.Context, everything) (route.Empty, error) { return route.Empty{}, nil }).Status(202).
			With(func(r *route.Route) { r.Tags("x") }),
	); err != nil {
		t.Fatal(err)
	}
	if got := must(api.OpenAPI(info)); !bytes.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
