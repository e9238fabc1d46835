package overload

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/lab/service"
)

// A server with the bounds of the service's answers an HTTP/2 request that is made by
// hand, so that the resets are of requests that it had begun.
func TestHostileClientsSpeakHTTP2(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var once sync.Once
	seen := make(chan *http.Request, 1)
	srv := httptest.NewUnstartedServer(nil)
	srv.Config = newServer()
	srv.Config.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { once.Do(func() { seen <- r }) })
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
	for _, k := range strikers {
		if k.name == resets {
			continue // as above
		}
		ctx, cancel := context.WithCancel(t.Context())
		srv := httptest.NewUnstartedServer(nil)
		srv.Config = newServer()
		seen := make(chan struct{}, 1000)
		srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
			if s == http.StateActive { // something was sent
				seen <- struct{}{}
			}
		}
		srv.Start()
		var attack sync.WaitGroup
		attack.Go(func() { k.strike(ctx, srv.Listener.Addr().String()) })
		<-seen
		cancel()
		attack.Wait()
		srv.Close()
	}
}

// failing notes the error with which a write of the answer ends.
type failing struct {
	http.ResponseWriter
	err error
}

func (f *failing) Write(p []byte) (int, error) {
	n, err := f.ResponseWriter.Write(p)
	f.err = errors.Join(f.err, err)
	return n, err
}

// Each kind reaches its handler, which asks the backend for nothing. That of a slow reader
// still writes when the client goes: no buffer on the way has taken the answer.
func TestEveryHolderHoldsItsHandlerAndNotTheBackend(t *testing.T) {
	for _, h := range holding {
		name := h.name
		ctx, cancel := context.WithCancel(t.Context())
		entered, left := make(chan string, 1), make(chan error, 1)
		routes := routesTo(nil) // which panics if it is asked
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			entered <- r.URL.Path
			f := &failing{ResponseWriter: w}
			routes.ServeHTTP(f, r)
			left <- f.err
		}))
		srv.Config.ConnContext = smallBuffers
		srv.Start()
		gone := make(chan bool)
		go func() { gone <- h.strike(ctx, srv.Listener.Addr().String()) }()
		if path := <-entered; !strings.Contains(h.first, " "+path+" ") {
			t.Errorf("%s: a request for %s", name, path)
		}
		cancel()
		if <-gone {
			t.Errorf("%s: refused", name)
		}
		if err := <-left; h.stops && err == nil {
			t.Errorf("%s: the answer was written", name)
		}
		srv.Close()
	}
}

func TestARefusedHolderIsToldSoAtOnce(t *testing.T) {
	refusing := &Guard{Admit: func(context.Context, func(context.Context) error) error { return ErrRefused }}
	srv := httptest.NewServer(refusing.Behind(nil, callersWait))
	defer srv.Close()
	for _, h := range holding {
		name := h.name
		if !h.strike(t.Context(), srv.Listener.Addr().String()) {
			t.Errorf("%s was not refused", name)
		}
	}
}

// Twice as many at a time as there are slots take twice as long, and no longer. A caller that leaves takes its
// call out of the queue.
func TestAnNWayBackendLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each = 40 * time.Millisecond
		b := newNWay(service.Work{Slots: 3, Min: each, Max: each}, 1)
		began := time.Now()
		took := make(chan time.Duration, 6)
		for range cap(took) {
			go func() {
				if err := b.Ask(t.Context()); err != nil {
					t.Error(err)
				}
				took <- time.Since(began)
			}()
		}
		synctest.Wait()
		brief, cancel := context.WithTimeout(t.Context(), each/2)
		defer cancel()
		if err := b.Ask(brief); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		for i := range cap(took) {
			if got, want := <-took, each*time.Duration(1+i/3); got != want {
				t.Errorf("call %d took %v, want %v", i, got, want)
			}
		}
	})
}
