package routegin_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/spillway-go/spillway/route"
	"github.com/spillway-go/spillway/routegin"
)

func TestMiddlewareRunsFromTheEngineInwardsAndSeesTheAnswer(t *testing.T) {
	var order []string
	step := func(name string) gin.HandlerFunc {
		return func(g *gin.Context) {
			order = append(order, name)
			g.Next()
			order = append(order, fmt.Sprint(name, " ", g.Writer.Status(), " ", g.Writer.Written(), " ", g.Writer.Size(), " ", g.IsAborted()))
		}
	}
	engine := gin.New()
	engine.Use(step("engine"))
	group := engine.Group("/g", step("group"))
	std := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			order = append(order, "net/http")
			next.ServeHTTP(w, r)
		})
	}
	register(t, group,
		routegin.New("POST", "/made", func(*routegin.Context, route.Empty) (string, error) {
			order = append(order, "handler")
			return "made", nil
		}).Status(201).AddMiddlewares(step("first"), step("second")).With(func(r *route.Route) { r.Use(std) }),
		routegin.New("POST", "/empty", func(*routegin.Context, route.Empty) (route.Empty, error) { return route.Empty{}, nil }),
		routegin.New("POST", "/bad", func(*routegin.Context, struct {
			N int `query:"n" validate:"required"`
		}) (route.Empty, error) {
			return route.Empty{}, nil
		}),
	)
	w := do(engine, "POST", "/g/made", "", "")
	size := w.Body.Len()
	after := fmt.Sprintf(" 201 true %d false", size)
	want := []string{"engine", "group", "first", "second", "net/http", "handler", "second" + after, "first" + after, "group" + after, "engine" + after}
	if w.Code != 201 || !slices.Equal(order, want) {
		t.Errorf("%d %q, want %q", w.Code, order, want)
	}
	order = nil
	do(engine, "POST", "/g/empty", "", "") // gin writes the head at the end
	if want := []string{"engine", "group", "group 204 false -1 false", "engine 204 false -1 false"}; !slices.Equal(order, want) {
		t.Errorf("%q", order)
	}
	order = nil
	w = do(engine, "POST", "/g/bad", "", "")
	after = fmt.Sprintf(" 400 true %d true", w.Body.Len())
	if want := []string{"engine", "group", "group" + after, "engine" + after}; !slices.Equal(order, want) {
		t.Errorf("%q", order)
	}
}

func TestMiddlewareThatAbortsIsTheAnswer(t *testing.T) {
	called := false
	engine := serve(t, routegin.New("GET", "/", func(*routegin.Context, route.Empty) (string, error) { called = true; return "", nil }).
		AddMiddlewares(func(g *gin.Context) { g.AbortWithStatusJSON(http.StatusUnauthorized, gin.H{"who": "?"}) }))
	if w := do(engine, "GET", "/", "", ""); w.Code != 401 || w.Body.String() != `{"who":"?"}` || called {
		t.Errorf("%d %s %v", w.Code, w.Body, called)
	}
}

// A status that gin middleware sets before the handler runs does not become the answer's status.
func TestAStatusThatWasSetBeforeIsNotTheAnswers(t *testing.T) {
	engine := serve(t, routegin.New("GET", "/", func(*routegin.Context, route.Empty) (string, error) { return "fine", nil }).
		AddMiddlewares(func(g *gin.Context) { g.Status(http.StatusAccepted) }))
	if w := do(engine, "GET", "/", "", ""); w.Code != 200 {
		t.Error(w.Code)
	}
}

func TestWhatMiddlewareSetsReachesTheHandlerAndBack(t *testing.T) {
	type key struct{}
	engine := gin.New()
	var back any
	engine.Use(func(g *gin.Context) {
		g.Set("user", "ada")
		g.Set(7, "seven")
		g.Request = g.Request.WithContext(context.WithValue(g.Request.Context(), key{}, "inner"))
		g.Next()
		back, _ = g.Get("rows")
	})
	register(t, engine, routegin.New("GET", "/", func(c *routegin.Context, _ route.Empty) ([]any, error) {
		set := c.Gin(func(g *gin.Context) { g.Set("rows", 3); g.SetCookie("a", "b", 0, "", "", false, true) })
		return []any{c.Value("user"), c.Value(7), c.Value(key{}), c.Value("other"), set}, nil
	}))
	w := do(engine, "GET", "/", "", "")
	if got := strings.TrimSpace(w.Body.String()); got != `["ada","seven","inner",null,true]` || back != 3 || w.Header().Get("Set-Cookie") == "" {
		t.Errorf("%s %v %v", got, back, w.Header())
	}
}

func TestTheContextHasWhatLimitsAndMiddlewareOfTheRoutePutAround(t *testing.T) {
	type key struct{}
	register := func(use func(http.Handler) http.Handler, handle func(*routegin.Context, route.Empty) (bool, error)) *gin.Engine {
		return serve(t, routegin.New("GET", "/", handle).With(func(r *route.Route) { r.Use(use).Limits(route.Limits{Handle: 1 << 40}) }))
	}
	engine := register(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), key{}, 1)))
		})
	}, func(c *routegin.Context, _ route.Empty) (bool, error) {
		_, bounded := c.Deadline()
		return bounded && c.Value(key{}) == 1, nil
	})
	if w := do(engine, "GET", "/", "", ""); strings.TrimSpace(w.Body.String()) != "true" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestAClientThatLeftIsNotLoggedAsServed(t *testing.T) {
	status := 0
	engine := gin.New()
	engine.Use(func(g *gin.Context) { g.Next(); status = g.Writer.Status() })
	ctx, cancel := context.WithCancel(context.Background())
	register(t, engine, routegin.New("GET", "/", func(c *routegin.Context, _ route.Empty) (string, error) {
		cancel()
		<-c.Done()
		return "", c.Err()
	}))
	engine.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", "/", nil))
	if status != 499 {
		t.Error(status)
	}
}

func explodes(*routegin.Context, route.Empty) (string, error) { panic("boom") }

func TestPanicsReachGinsRecoveryWithTheirStack(t *testing.T) {
	var value any
	var logged strings.Builder
	engine := gin.New()
	engine.Use(gin.CustomRecoveryWithWriter(&logged, func(g *gin.Context, v any) { value = v; g.AbortWithStatus(500) }))
	register(t, engine, routegin.New("GET", "/", explodes))
	if w := do(engine, "GET", "/", "", ""); w.Code != 500 || value != "boom" || !strings.Contains(logged.String(), "gin_test.go:") {
		t.Errorf("%d %v %s", w.Code, value, &logged)
	}
}

// gin's Recovery swallows http.ErrAbortHandler and the engine ends the answer. The client must
// nevertheless detect that the answer is partial.
func TestABrokenStreamIsCutAlsoBehindRecovery(t *testing.T) {
	engine := gin.New()
	engine.Use(gin.RecoveryWithWriter(io.Discard))
	register(t, engine,
		routegin.New("GET", "/stream", func(*routegin.Context, route.Empty) (route.Stream, error) {
			return route.Stream{Write: func(w io.Writer) error {
				_, _ = io.WriteString(w, "part\n")
				return errors.New("the source broke")
			}}, nil
		}),
		routegin.New("GET", "/abort", func(*routegin.Context, route.Empty) (string, error) { panic(http.ErrAbortHandler) }),
	)
	for version := 1; version <= 2; version++ {
		server := httptest.NewUnstartedServer(engine)
		server.EnableHTTP2 = version == 2
		server.StartTLS()
		defer server.Close()
		resp, err := server.Client().Get(server.URL + "/stream")
		if err != nil || resp.ProtoMajor != version {
			t.Fatal(resp, err)
		}
		defer resp.Body.Close()
		body := bufio.NewReader(resp.Body)
		if line, err := body.ReadString('\n'); line != "part\n" || err != nil {
			t.Fatal(line, err)
		}
		if rest, err := io.ReadAll(body); err == nil {
			t.Errorf("HTTP/%d: ended as if whole, with %q", version, rest)
		}
		if resp, err := server.Client().Get(server.URL + "/abort"); err == nil {
			_ = resp.Body.Close()
			t.Errorf("HTTP/%d: answered %s", version, resp.Status)
		}
	}
}
