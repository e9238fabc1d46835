package fleet

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/limiter"
)

// serve is one replica, in a process of its own.
func serve(ctx context.Context, j job, ready contestant.Ready) (*service.Served, error) {
	handler, look, end, err := replica(j)
	if err != nil {
		return nil, err
	}
	defer end()
	return service.Serve(ctx, ready, &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}, look)
}

// replica is its handler, what looks at its limiter, and what ends it. Its trouble is
// counted from its first request.
func replica(j job) (handler http.Handler, look func(*service.Sample), end func(), err error) {
	store := service.NewDatabase(j.Work, j.Seed)
	begin := sync.OnceFunc(func() {
		time.AfterFunc(j.WarmUp, func() { store.Slow(slower) })
		time.AfterFunc(j.WarmUp+j.Trouble, func() { store.Slow(1) })
	})
	handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := store.Ask(r.Context()); err != nil {
			http.Error(w, "too late", http.StatusGatewayTimeout)
			return
		}
		_, _ = io.WriteString(w, "done\n")
	})
	look, end = func(*service.Sample) {}, func() {}
	if j.Protected {
		lim, err := limiter.New(limiter.Config{})
		if err != nil {
			return nil, nil, nil, err
		}
		admit, err := admissionhttp.New(admissionhttp.Config{Limiter: lim})
		if err != nil {
			return nil, nil, nil, err
		}
		handler, end = admit(handler), lim.Close
		look = func(x *service.Sample) {
			s := lim.Stats()
			x.Limit, x.InFlight, x.Queued, x.Rejected = s.Limit, s.InFlight, s.Queued, s.Rejected
		}
	}
	ask := handler
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin()
		ask.ServeHTTP(w, r)
	}), look, end, nil
}
