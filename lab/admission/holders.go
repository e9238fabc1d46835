package admission

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/overload"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/loadgen"
)

// What bounds the service of the part holders, besides ours.
const (
	none     = overload.None
	shortly  = overload.Semaphore // x/sync/semaphore with the backend's slots; a request waits for one for semaphoreWait
	failsafe = overload.Failsafe
)

// RoleFailsafe is the service of the part holders behind failsafe-go, in a program of its
// own: it takes a service.Job.
const RoleFailsafe = "admission-failsafe"

const failsafeProgram = "patient"

const (
	semaphoreWait = 100 * time.Millisecond
	callersWait   = 2 * time.Second // of every request, as in the README: Deadlines for ours, the same deadline for the others
)

// holder is one kind of request that waits and asks the backend for nothing. Holders come
// when the measurement begins: what a limiter needs to find them out counts.
type holder struct {
	first string // what its client sends
	stops bool   // the client does not read the answer
}

// holderKinds come to a service of their own each. Each client holds one connection, and begins anew when that has
// ended or was refused.
var holderKinds = map[string]holder{
	"slow readers":      {first: "GET /report HTTP/1.1\r\nHost: h\r\n\r\n", stops: true},
	"stalled bodies":    {first: upload + "1\r\na\r\n"},
	"long polls":        {first: "GET /poll HTTP/1.1\r\nHost: h\r\n\r\n"},
	"a hung dependency": {first: "GET /mail HTTP/1.1\r\nHost: h\r\n\r\n"},
}

const (
	holderCount  = 100
	holderPause  = 500 * time.Millisecond // until a client begins anew
	holderBuffer = 16 << 10               // of each connection, in each direction
	reportSize   = 4 << 20
	pollTime     = 1500 * time.Millisecond
)

// holding are the routes of the holders beside those of the lookups.
func holding(store backend) http.Handler {
	report := []byte(strings.Repeat("a", reportSize))
	mux := routes(store).(*http.ServeMux)
	mux.HandleFunc("GET /report", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(report) })
	mux.HandleFunc("GET /poll", func(w http.ResponseWriter, r *http.Request) {
		if service.Pause(r.Context(), pollTime) == nil {
			_, _ = io.WriteString(w, "nothing new\n")
		}
	})
	mux.HandleFunc("GET /mail", func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		http.Error(w, "the mail server hangs", http.StatusGatewayTimeout)
	})
	return mux
}

// held is the service of the part holders, behind a contestant of this program.
func held(ctx context.Context, j service.Job, ready contestant.Ready) (*service.Served, error) {
	if j.Pattern != ours {
		guard, err := holdersGuard(j.Pattern, j.Work.Slots)
		if err != nil {
			return nil, err
		}
		return Held(ctx, j, ready, guard)
	}
	lim, err := limiter.New(limiter.Config{})
	if err != nil {
		return nil, err
	}
	defer lim.Close()
	protect, err := admissionhttp.New(admissionhttp.Config{Limiter: lim, Deadlines: map[spillway.Priority]time.Duration{spillway.Normal: callersWait}})
	if err != nil {
		return nil, err
	}
	return heldBehind(ctx, j, ready, protect, lim.Limit)
}

// Held plays the service of the part holders behind a guard until ctx ends, and closes
// the guard.
func Held(ctx context.Context, j service.Job, ready contestant.Ready, guard *overload.Guard) (*service.Served, error) {
	defer guard.Close()
	return heldBehind(ctx, j, ready, behind(guard), guard.Limit)
}

func heldBehind(ctx context.Context, j service.Job, ready contestant.Ready, protect func(http.Handler) http.Handler, limit func() int) (*service.Served, error) {
	var inside atomic.Int64
	routes := holding(newBackend(j))
	counted := http.NewServeMux() // the middleware finds the routes in it
	for _, path := range []string{"GET /livez", "GET /work", "POST /upload", "GET /report", "GET /poll", "GET /mail"} {
		counted.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			inside.Add(1)
			defer inside.Add(-1)
			routes.ServeHTTP(w, r)
		})
	}
	web := newServer(protect(counted))
	web.ConnContext = smallBuffers
	return service.Serve(ctx, ready, web, func(s *service.Sample) { s.Limit, s.InFlight = limit(), int(inside.Load()) })
}

// smallBuffers keeps the kernel from taking an answer that its client does not read.
func smallBuffers(ctx context.Context, c net.Conn) context.Context {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(holderBuffer)
	}
	return ctx
}

// holdersGuard is the contestant of that name.
func holdersGuard(name string, slots int) (*overload.Guard, error) {
	if name == shortly {
		return overload.SemaphoreFor(slots, semaphoreWait), nil
	}
	return overload.NewGuard(name, slots)
}

// behind is a middleware that asks the guard. Every request ends after callersWait.
func behind(guard *overload.Guard) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), callersWait)
			defer cancel()
			admitted := false
			err := guard.Do(ctx, func(ctx context.Context) error {
				admitted = true
				next.ServeHTTP(w, r.WithContext(ctx))
				return nil
			})
			switch {
			case admitted:
			case errors.Is(err, spillway.ErrRejected):
				w.Header().Set("Connection", "close") // net/http would wait for the rest of a body
				http.Error(w, "refused", http.StatusServiceUnavailable)
			default:
				w.Header().Set("Connection", "close")
				http.Error(w, "too late", http.StatusGatewayTimeout)
			}
		})
	}
}

// hold sends a request and holds its connection until the server has answered, or until
// ctx ends if the client stops reading. It says whether it was refused.
func (h holder) hold(ctx context.Context, address string) (refused bool) {
	c, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(holderBuffer)
	}
	status := make([]byte, len("HTTP/1.1 200"))
	if _, err = io.WriteString(c, h.first); err == nil {
		_, err = io.ReadFull(c, status)
	}
	if err != nil {
		return false
	}
	if h.stops && strings.HasSuffix(string(status), " 200") {
		<-ctx.Done()
	}
	return strings.HasSuffix(string(status), " 503")
}

// hold measures what lookups get from the moment on at which the holders come.
func (c Config) hold(ctx context.Context, srv *service.Service, j service.Job) (results.Run, error) {
	target, err := loadgen.NewHTTP(loadgen.HTTPConfig{URL: "http://" + srv.Address + "/work"})
	if err != nil {
		return results.Run{}, err
	}
	defer target.Close()
	h, s := holderKinds[j.Backend], scenes[holders]
	load := s.load(c)
	load.Seed, load.Timeout, load.Fills = j.Seed, s.deadline, true
	from, to := load.Window()
	holding, end := context.WithCancel(srv.Loading)
	var refused atomic.Int64
	var all sync.WaitGroup
	for range holderCount {
		all.Go(func() {
			for wait := time.Until(from); service.Pause(holding, wait) == nil; wait = holderPause {
				if h.hold(holding, srv.Address) {
					refused.Add(1)
				}
			}
		})
	}
	run, served, err := srv.Measure(ctx, load, func(ctx context.Context, n uint64, _ bool) loadgen.Outcome { return target.Do(ctx, n) })
	end()
	all.Wait()
	if err != nil {
		return results.Run{}, err
	}
	run.Extra = map[string]float64{"answered": 100 * run.Share("ok"), "holders_refused": float64(refused.Load())}
	sum, n := 0.0, 0.0
	for _, x := range served.Samples {
		if !x.At.Before(from) && x.At.Before(to) {
			sum, n = sum+float64(x.InFlight), n+1
		}
	}
	if n > 0 {
		run.Extra["inside"] = sum / n
	}
	return run, nil
}
