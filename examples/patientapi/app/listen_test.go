package app

import (
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/internal/assert"
)

// Without a timeout of requests there was none of writing, and none of the header.
func TestEveryBoundOfTheServerIsSet(t *testing.T) {
	for _, timeout := range []time.Duration{0, time.Second, time.Hour} {
		srv := server(http.NotFoundHandler(), timeout, slog.New(slog.DiscardHandler))
		if srv.WriteTimeout <= timeout || srv.ReadTimeout <= 0 || srv.ReadHeaderTimeout <= 0 || srv.IdleTimeout <= 0 || srv.MaxHeaderBytes <= 0 || srv.MaxHeaderBytes > 64<<10 || srv.HTTP2.WriteByteTimeout <= 0 {
			t.Errorf("timeout %v: %+v", timeout, srv)
		}
	}
}

// endless is a listener with always one connection more.
type endless struct{ net.Listener }

func (endless) Accept() (net.Conn, error) { c, _ := net.Pipe(); return c, nil }
func (endless) Close() error              { return nil }

func TestNoConnectionIsAcceptedBeyondTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var srv http.Server
		l := bounded(&srv, endless{}, 2)
		accepted := make(chan error, 9)
		go func() {
			for {
				_, err := l.Accept()
				if accepted <- err; err != nil {
					return
				}
			}
		}()
		for _, state := range []http.ConnState{http.StateNew, http.StateActive, http.StateIdle, http.StateClosed, http.StateHijacked} {
			srv.ConnState(nil, state)
		}
		synctest.Wait()
		if n := len(accepted); n != 4 {
			t.Errorf("%d were accepted, of which 2 ended; want 4", n)
		}
		for range 2 { // closing twice is fine
			assert.NoError(t, l.Close())
		}
		synctest.Wait()
		for range 4 {
			<-accepted
		}
		if err := <-accepted; err != net.ErrClosed {
			t.Error(err)
		}
	})
}
