package stories

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/limiter"
)

// job is the input of a service.
type job struct {
	Story     string
	Protected bool
	Config
	Seed uint64
}

// serve is the service of a story, in a process of its own.
func serve(ctx context.Context, j job, ready contestant.Ready) (*service.Served, error) {
	s, err := find(j.Story)
	if err != nil {
		return nil, err
	}
	f := &front{protected: j.Protected}
	defer f.close()
	handler, err := s.service(j, f)
	if err != nil {
		return nil, err
	}
	return service.Serve(ctx, ready, &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}, f.look)
}

// front is what stands in front of the handlers: nothing, unless the service is protected.
type front struct {
	protected bool
	limiters  []*limiter.Limiter
}

// admit is the middleware with a limiter of that configuration. Most bounds the limit; 0:
// nothing does.
func (f *front) admit(cfg limiter.Config, most int) (func(http.Handler) http.Handler, error) {
	if !f.protected {
		return func(h http.Handler) http.Handler { return h }, nil
	}
	lim, err := limiter.New(cfg)
	if err != nil {
		return nil, err
	}
	f.limiters = append(f.limiters, lim)
	if err := lim.SetBounds(0, most); err != nil {
		return nil, err
	}
	return admissionhttp.New(admissionhttp.Config{Limiter: lim})
}

func (f *front) look(x *service.Sample) {
	for _, l := range f.limiters {
		s := l.Stats()
		x.Limit, x.InFlight, x.Queued, x.Rejected = x.Limit+s.Limit, x.InFlight+s.InFlight, x.Queued+s.Queued, x.Rejected+s.Rejected
	}
}

func (f *front) close() {
	for _, l := range f.limiters {
		l.Close()
	}
}

// answering is a handler that does the work and answers. Work that ended early has an
// answer that nobody reads, or is too late.
func answering(work func(r *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := work(r); err != nil {
			http.Error(w, "too late", http.StatusGatewayTimeout)
			return
		}
		_, _ = io.WriteString(w, "done\n")
	})
}
