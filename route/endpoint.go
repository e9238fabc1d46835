package route

import (
	"context"
	"net/http"
	"reflect"

	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/objectpool"
)

// core is what all requests of one route share, whatever its types.
type core struct {
	cfg         Config
	plan        *plan
	answer      *answer
	limits      Limits
	json        []string // media types of a JSON body
	content     []string // the Content-Type of a response that is encoded
	unsupported *Problem
	pathValue   func(*http.Request, string) string
	pattern     string
	status      int
	limiter     *limiter.Limiter
	timings     *timings // nil if not asked for
	lax         bool
	laxIf       func(*http.Request) bool // nil: never
	refuse      func(name string) bool   // of what is not known and would be ignored; nil: nothing
	holds       bool                     // code of the user sees a pointer into the request
}

// beside is what an adapter hands over beside the request; nothing, where the
// request has it all.
type beside struct {
	ctx    context.Context
	values PathValues
}

func (b beside) context(r *http.Request) context.Context {
	if b.ctx != nil {
		return b.ctx
	}
	return r.Context()
}

// carried returns r with the context, for code that finds it there.
func (b beside) carried(r *http.Request) *http.Request {
	if b.ctx != nil {
		return r.WithContext(b.ctx)
	}
	return r
}

// endpoint serves one route.
type endpoint[Req, Res any] struct {
	*core
	handle func(context.Context, Req) (Res, error)
	boxes  *objectpool.Pool[box[Req, Res]]
}

// box is the memory one request needs. The handler is given a copy of req, and
// res is copied from what it returns, so neither is seen outside; where code of
// the user is called with a pointer into one of them, that one is not reused.
type box[Req, Res any] struct {
	scratch
	req Req
	res Res
}

func newEndpoint[Req, Res any](c *core, handle func(context.Context, Req) (Res, error)) http.Handler {
	return &endpoint[Req, Res]{c, handle, objectpool.New(objectpool.Config[box[Req, Res]]{
		New: func() *box[Req, Res] {
			b := new(box[Req, Res])
			b.encoder = newEncoder(&b.out)
			return b
		},
		Clear: func(b *box[Req, Res]) {
			b.scratch.clear()
			b.req, b.res = *new(Req), *new(Res)
		},
	})}
}

func (e *endpoint[Req, Res]) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.run(w, r, beside{})
}

func (e *endpoint[Req, Res]) ServeContext(ctx context.Context, w http.ResponseWriter, r *http.Request, values PathValues) {
	e.run(w, r, beside{ctx, values})
}

// run bounds the request's time, and has it observed.
func (e *endpoint[Req, Res]) run(w http.ResponseWriter, r *http.Request, by beside) {
	if e.limits.Handle > 0 {
		ctx, cancel := context.WithTimeout(by.context(r), e.limits.Handle)
		defer cancel()
		r, by.ctx = r.WithContext(ctx), nil
	}
	t := progress{timing: e.timings.begin()}
	if e.cfg.Observe != nil {
		t.outcome = &Outcome{Pattern: e.pattern}
		defer e.cfg.observe(by.carried(r), t.outcome) // also when the handler panics
	}
	e.admit(w, r, by, &t)
}

// admit asks the route's limiter, and has the request served.
func (e *endpoint[Req, Res]) admit(w http.ResponseWriter, r *http.Request, by beside, t *progress) {
	if e.limiter == nil {
		e.serve(w, r, by, t, limiter.Permit{})
		return
	}
	permit, err := e.limiter.Acquire(by.context(r))
	t.waited()
	if err != nil {
		e.limits.hurry(w, r)
		e.fail(w, by.carried(r), t, err)
		return
	}
	defer permit.Release() // also when the handler panics
	e.serve(w, r, by, t, permit)
}

// serve binds, handles and answers. A panic goes through it; its box is then
// left to the collector, since others may still look at it.
func (e *endpoint[Req, Res]) serve(w http.ResponseWriter, r *http.Request, by beside, t *progress, permit limiter.Permit) {
	b := e.boxes.Get()
	req, res := &b.req, &b.res
	if e.holds {
		req = new(Req)
	}
	err := e.bind(&b.scratch, w, r, by.values, reflect.ValueOf(req).Elem())
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
			if e.answer.holds {
				res = new(Res)
			}
			*res = answer
			if e.answer.releases {
				err = e.respondAndRelease(&b.scratch, w, r, t, res)
			} else {
				err = e.respond(&b.scratch, w, r, t, res)
			}
		}
	}
	if err != nil {
		e.fail(w, by.carried(r), t, err)
	}
	e.boxes.Put(b)
}

// fail answers with the problem that err is. It panics where a part of another
// answer was sent, as net/http asks for, to abort the connection.
func (c *core) fail(w http.ResponseWriter, r *http.Request, t *progress, err error) {
	if late, ok := err.(lateError); ok {
		t.failed(late.error)
		if r.Context().Err() != context.Canceled {
			c.cfg.report(r, c.pattern, late.error)
		}
		panic(http.ErrAbortHandler)
	}
	t.failed(err)
	t.write(w.Header())
	status, n := c.cfg.answer(w, r, c.pattern, c.plan, err)
	t.sends(status)
	t.sent(n)
}
