package route

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"sync"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/route/internal/encode"
	"github.com/spillway-go/spillway/route/internal/shape"
	"github.com/spillway-go/spillway/route/internal/wire"
)

// core holds the data that all requests of one route share.
type core struct {
	cfg          Config
	plan         *shape.Plan
	binder       wire.Binder
	answer       *answer
	limits       Limits
	json         []string // media types of a JSON body
	content      []string // the Content-Type of a response that is encoded
	unsupported  *Problem
	pathValue    func(*http.Request, string) string // nil: of the request
	pattern      string
	status       int
	limiter      *limiter.Limiter
	until        context.Context // nil: no end but that of the request
	timings      *timings        // nil if the route is untimed
	allowUnknown bool
}

// override holds the context and path values that an adapter passes next to the request, if any.
type override struct {
	ctx    context.Context
	values pathValues
}

func (o override) context(r *http.Request) context.Context {
	if o.ctx != nil {
		return o.ctx
	}
	return r.Context()
}

// request returns r with the context of o, for code that reads the request's context.
func (o override) request(r *http.Request) *http.Request {
	if o.ctx != nil {
		return r.WithContext(o.ctx)
	}
	return r
}

// endpoint serves one route.
type endpoint[Req, Res any] struct {
	*core
	handle func(context.Context, Req) (Res, error)
	boxes  sync.Pool // of *box[Req, Res]
}

// box is the memory that one request needs. The handler gets a copy of req, and res is a copy of
// its result, so neither is visible outside. A req or res that user code gets a pointer into is not
// reused.
type box[Req, Res any] struct {
	wire.Scratch
	out encode.Output
	req Req
	res Res
}

func newEndpoint[Req, Res any](c *core, handle func(context.Context, Req) (Res, error)) http.Handler {
	return &endpoint[Req, Res]{core: c, handle: handle, boxes: sync.Pool{New: func() any {
		b := new(box[Req, Res])
		b.out.Init()
		return b
	}}}
}

// clear empties b, so that nothing of a request reaches the next one.
func (b *box[Req, Res]) clear() {
	b.Scratch.Clear()
	b.out.Clear()
	b.req, b.res = *new(Req), *new(Res)
}

func (e *endpoint[Req, Res]) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.run(w, r, override{})
}

func (e *endpoint[Req, Res]) ServeContext(ctx context.Context, w http.ResponseWriter, r *http.Request, values pathValues) {
	e.run(w, r, override{ctx, values})
}

// stopped is the cause of the end of a context by Route.Until.
var stopped = &spillway.Rejection{Reason: spillway.ReasonDraining}

// run applies Route.Until and the request's time limit, and calls Observe.
func (e *endpoint[Req, Res]) run(w http.ResponseWriter, r *http.Request, by override) {
	if e.until != nil {
		ctx, cancel := context.WithCancelCause(by.context(r))
		defer cancel(nil)
		defer context.AfterFunc(e.until, func() { cancel(stopped) })()
		r, by.ctx = r.WithContext(ctx), nil
	}
	if e.limits.Handle > 0 {
		ctx, cancel := context.WithTimeout(by.context(r), e.limits.Handle)
		defer cancel()
		r, by.ctx = r.WithContext(ctx), nil
	}
	t := progress{timing: e.timings.begin()}
	if e.cfg.Observe != nil {
		t.outcome = &Outcome{Pattern: e.pattern}
		defer e.cfg.observe(by.request(r), t.outcome) // also when the handler panics
	}
	e.admit(w, r, by, &t)
}

// admit acquires a permit from the route's limiter, and then serves the request.
func (e *endpoint[Req, Res]) admit(w http.ResponseWriter, r *http.Request, by override, t *progress) {
	if e.until != nil && e.until.Err() != nil { // the context of r may end a little later
		e.refuse(w, r, by, t, stopped)
		return
	}
	if e.limiter == nil {
		e.serve(w, r, by, t, limiter.Permit{})
		return
	}
	permit, err := e.limiter.Acquire(by.context(r))
	t.waited()
	if err != nil {
		e.refuse(w, r, by, t, err)
		return
	}
	defer permit.Release() // also when the handler panics
	e.serve(w, r, by, t, permit)
}

// refuse answers a request whose body is not read.
func (c *core) refuse(w http.ResponseWriter, r *http.Request, by override, t *progress, err error) {
	c.limits.setReadDeadline(w, r)
	c.fail(w, by.request(r), t, err)
}

// serve binds the request, calls the handler and answers. It does not recover panics. After a panic
// the box is left to the garbage collector, since other code may still use it.
func (e *endpoint[Req, Res]) serve(w http.ResponseWriter, r *http.Request, by override, t *progress, permit limiter.Permit) {
	b := e.boxes.Get().(*box[Req, Res])
	req, res := &b.req, &b.res
	if e.plan.Escapes {
		req = new(Req)
	}
	err := e.bind(&b.Scratch, w, r, by.values, reflect.ValueOf(req).Elem())
	t.decoded()
	if err == nil {
		if t.outcome != nil {
			t.outcome.Request = *req
		}
		var answer Res
		answer, err = e.handle(by.context(r), *req)
		t.handled()
		if err != nil || !e.answer.streams {
			permit.Done(err)
		}
		if err == nil {
			if e.answer.escapes {
				res = new(Res)
			}
			*res = answer
			if e.answer.closes {
				err = e.respondAndClose(by.context(r), &b.out, w, r, t, res)
			} else {
				err = e.respond(by.context(r), &b.out, w, r, t, res)
			}
		}
	}
	if err != nil {
		e.fail(w, by.request(r), t, err)
	}
	b.clear()
	e.boxes.Put(b)
}

// fail answers with the problem for err. If a part of another answer was sent, fail panics, as
// net/http requires, to abort the connection.
func (c *core) fail(w http.ResponseWriter, r *http.Request, t *progress, err error) {
	if late, ok := err.(lateError); ok {
		t.setError(late.error)
		if r.Context().Err() != context.Canceled {
			c.cfg.report(r, c.pattern, late.error)
		}
		panic(http.ErrAbortHandler)
	}
	if errors.Is(err, context.Canceled) && context.Cause(r.Context()) == error(stopped) {
		err = stopped
	}
	t.setError(err)
	t.write(w.Header())
	status, n := c.cfg.answerError(w, r, c.pattern, c.plan, err)
	t.setStatus(status)
	t.addBytes(n)
}
