package load

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/load/usage"
	"github.com/spillway-go/spillway/loadgen"
)

const answer = "Hello, generator!\n"

// served is what the server has counted.
type served struct {
	Requests uint64
	Time     time.Duration // from the first request to the last
}

// serve answers until it is stopped, and counts.
func serve(ctx context.Context, _ any, ready contestant.Ready) (s served, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return s, err
	}
	var requests atomic.Uint64
	var first, last atomic.Int64 // since began, in nanoseconds
	began := time.Now()
	web := &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		now := int64(time.Since(began))
		if requests.Add(1) == 1 {
			first.Store(now)
		}
		last.Store(now)
		_, _ = io.WriteString(w, answer) // a client may have left
	})}
	context.AfterFunc(ctx, func() { _ = web.Close() })
	if err := ready("http://" + listener.Addr().String() + "/"); err != nil {
		return s, err
	}
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return s, err
	}
	return served{requests.Load(), time.Duration(last.Load() - first.Load())}, nil
}

// viaNetHTTP sends the loop by net/http's client, and returns the processor time of its
// process.
func viaNetHTTP(ctx context.Context, l loop) (time.Duration, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: l.Connections, DisableCompression: true}
	defer transport.CloseIdleConnections()
	send := func(ctx context.Context, _ uint64) loadgen.Outcome {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.URL, nil)
		if err != nil {
			return loadgen.Error
		}
		outcome, _ := service.Ask(transport, request)
		return outcome
	}
	_, err := loadgen.Run(ctx, loadgen.Config{Target: loadgen.TargetFunc(send), Closed: &loadgen.Closed{Clients: l.Connections, Duration: l.Time}})
	return usage.CPU(), err
}
