package admission

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	root "github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/lab/overload"
)

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
	for name, h := range holderKinds {
		ctx, cancel := context.WithCancel(t.Context())
		entered, left := make(chan string, 1), make(chan error, 1)
		routes := holding(nil) // which panics if it is asked
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			entered <- r.URL.Path
			f := &failing{ResponseWriter: w}
			routes.ServeHTTP(f, r)
			left <- f.err
		}))
		srv.Config.ConnContext = smallBuffers
		srv.Start()
		gone := make(chan bool)
		go func() { gone <- h.hold(ctx, srv.Listener.Addr().String()) }()
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
	refusing := &overload.Guard{Admit: func(context.Context, func(context.Context) error) error { return overload.ErrRefused }}
	srv := httptest.NewServer(behind(refusing)(http.NotFoundHandler()))
	defer srv.Close()
	for name, h := range holderKinds {
		if !h.hold(t.Context(), srv.Listener.Addr().String()) {
			t.Errorf("%s was not refused", name)
		}
	}
}

// What is admitted, and what waits, ends after callersWait behind every guard.
func TestARequestBehindAGuardHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		guard, err := holdersGuard(none, 1)
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		behind(guard)(holding(nil)).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/mail", nil))
		if w.Code != http.StatusGatewayTimeout {
			t.Errorf("status %d", w.Code)
		}
	})
}

func TestTheSemaphoreRefusesAfterAShortWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		guard, err := holdersGuard(shortly, 1)
		if err != nil {
			t.Fatal(err)
		}
		err = guard.Do(t.Context(), func(ctx context.Context) error {
			return guard.Do(ctx, func(context.Context) error { return nil })
		})
		if !errors.Is(err, root.ErrRejected) {
			t.Errorf("a second one: %v", err)
		}
		if err := guard.Do(t.Context(), func(context.Context) error { return nil }); err != nil {
			t.Errorf("after the first has ended: %v", err)
		}
	})
}
