package admission

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// A server with the bounds of the service's answers an HTTP/2 request that is made by
// hand, so that the resets are of requests that it had begun.
func TestHostileClientsSpeakHTTP2(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var once sync.Once
	seen := make(chan *http.Request, 1)
	srv := httptest.NewUnstartedServer(nil)
	srv.Config = newServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		once.Do(func() { seen <- r })
	}))
	srv.Start()
	defer srv.Close()
	c, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	striking := make(chan struct{})
	go func() {
		defer close(striking)
		rapidResets(ctx, c)
	}()
	if r := <-seen; r.ProtoMajor != 2 || r.Method != http.MethodGet || r.URL.Path != "/work" {
		t.Errorf("%s %s %s", r.Proto, r.Method, r.URL)
	}
	cancel()
	<-striking
}

func TestEveryHostileClientReachesTheServer(t *testing.T) {
	for _, k := range kinds {
		if k.name == resets {
			continue // as above
		}
		ctx, cancel := context.WithCancel(t.Context())
		srv := httptest.NewUnstartedServer(nil)
		srv.Config = newServer(http.NotFoundHandler())
		seen := make(chan struct{}, 1000)
		srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
			if s == http.StateActive { // something was sent
				seen <- struct{}{}
			}
		}
		srv.Start()
		var attack sync.WaitGroup
		attack.Go(func() { k.attack(ctx, srv.Listener.Addr().String()) })
		<-seen
		cancel()
		attack.Wait()
		srv.Close()
	}
}

func TestIdleConnectionsHaveHadAnAnswer(t *testing.T) {
	srv := httptest.NewServer(routes(nil))
	defer srv.Close()
	held, err := holdIdle(t.Context(), srv.Listener.Addr().String(), 40)
	if err != nil || len(held) != 40 {
		t.Errorf("%d connections, %v", len(held), err)
	}
	for _, c := range held {
		c.Close()
	}
}
