package routegin_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/spillway-go/spillway/route"
	"github.com/spillway-go/spillway/routegin"
)

// Some route layers over gin pass on gin's pooled context, or pool their own. A goroutine that uses
// the context after the handler has returned then reads another request's values. With routegin the
// goroutine reads the values of its own request, by every access path.
func TestGoroutineThatOutlivesItsHandlerSeesItsOwnValues(t *testing.T) {
	const requests, lag, clients = 2_000, 64, 4
	type key struct{}
	type in struct {
		ID   string `path:"id"`
		Rest string `path:"rest"`
		Name string `json:"name"`
	}
	var wrong, looked atomic.Int64
	var late sync.WaitGroup
	gates := make(chan chan struct{}, requests)
	engine := gin.New()
	engine.Use(func(g *gin.Context) { g.Set("id", g.Query("id")); g.Next(); g.Set("id", "after") })
	register(t, engine, routegin.New("POST", "/:id/*rest", func(c *routegin.Context, req in) (string, error) {
		gate := make(chan struct{})
		gates <- gate
		want := c.Request.Header.Get("X-Id")
		late.Go(func() {
			<-gate // the handler has returned, and others have run
			if req.ID != want || req.Rest != want || req.Name != want || c.Value("id") != want || c.Value(key{}) != want ||
				c.Request.Header.Get("X-Id") != want {
				wrong.Add(1)
			}
			c.Gin(func(g *gin.Context) { // called only if the handler has not quite returned
				if g.Param("id") != want {
					wrong.Add(1)
				}
			})
			looked.Add(1)
		})
		return req.Name, nil
	}).With(func(r *route.Route) { r.AllowUnknown() }))
	var sending sync.WaitGroup
	for client := range clients {
		sending.Go(func() {
			for i := range requests / clients {
				id := fmt.Sprintf("%d-%d", client, i)
				ctx := context.WithValue(context.Background(), key{}, id)
				r := httptest.NewRequestWithContext(ctx, "POST", "/"+id+"/"+id+"?id="+id, strings.NewReader(`{"name":"`+id+`"}`))
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("X-Id", id)
				w := httptest.NewRecorder()
				engine.ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					t.Errorf("%d %s", w.Code, w.Body)
				}
				if len(gates) > lag {
					close(<-gates)
				}
			}
		})
	}
	sending.Wait()
	close(gates)
	for gate := range gates {
		close(gate)
	}
	late.Wait()
	if wrong.Load() != 0 || looked.Load() != requests {
		t.Errorf("%d of %d goroutines saw what was not theirs", wrong.Load(), looked.Load())
	}
}

// A goroutine may still be in Gin when its handler returns. The end of the request waits for the
// goroutine, so gin does not reuse its context before. Afterwards Gin calls no function.
func TestGinsOwnContextStaysWhileItIsLookedAt(t *testing.T) {
	inside, leave := make(chan struct{}), make(chan struct{})
	var kept *routegin.Context
	engine := serve(t, routegin.New("GET", "/:id", func(c *routegin.Context, req struct {
		ID string `path:"id"`
	}) (string, error) {
		kept = c
		go c.Gin(func(g *gin.Context) {
			close(inside)
			<-leave
			if g.Param("id") != "1" {
				t.Errorf("it has become %q", g.Param("id"))
			}
		})
		<-inside
		return req.ID, nil
	}))
	answered := make(chan struct{})
	go func() { do(engine, "GET", "/1", "", ""); close(answered) }()
	<-inside
	select {
	case <-answered:
		t.Error("the request ended with a goroutine in Gin")
	default:
	}
	close(leave)
	<-answered
	if kept.Gin(func(*gin.Context) { t.Error("called") }) || kept.Request.URL.Path != "/1" {
		t.Error("Gin is open, or the request is gone")
	}
}
