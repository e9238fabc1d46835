package route

import (
	"context"
	"errors"
	"net/http"
	"reflect"

	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/objectpool"
)

// core is what all requests of one route share, whatever its types.
type core struct {
	plan        *plan
	answer      *answer
	limits      Limits
	errors      Errors
	codecs      []Codec
	unsupported *Problem
	base        string
	report      func(context.Context, string, error)
	pattern     string
	status      int
	limiter     *limiter.Limiter
	timed, lax  bool
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
	if e.limits.Handle > 0 {
		ctx, cancel := context.WithTimeout(r.Context(), e.limits.Handle)
		defer cancel()
		r = r.WithContext(ctx)
	}
	t := e.begin()
	if e.limiter == nil {
		e.serve(w, r, &t, limiter.Permit{})
		return
	}
	permit, err := e.limiter.Acquire(r.Context())
	t.waited()
	if err != nil {
		e.fail(w, r, &t, err)
		return
	}
	defer permit.Release() // also when the handler panics
	e.serve(w, r, &t, permit)
}

// serve binds, handles and answers. A panic goes through it; its box is then
// left to the collector, since nobody knows who looks at it.
func (e *endpoint[Req, Res]) serve(w http.ResponseWriter, r *http.Request, t *timing, permit limiter.Permit) {
	b := e.boxes.Get()
	req, res := &b.req, &b.res
	if e.plan.holds {
		req = new(Req)
	}
	err := e.bind(&b.scratch, w, r, reflect.ValueOf(req).Elem())
	t.decoded()
	if err == nil {
		var answer Res
		answer, err = e.handle(r.Context(), *req)
		t.handled()
		if err != nil || !e.answer.streams {
			permit.Done(err)
		}
		if err == nil {
			if e.answer.holds {
				res = new(Res)
			}
			*res = answer
			err = e.respond(&b.scratch, w, r, t, res)
		}
	}
	if err != nil {
		e.fail(w, r, t, err)
	}
	e.boxes.Put(b)
}

// fail answers with the problem that err is.
func (c *core) fail(w http.ResponseWriter, r *http.Request, t *timing, err error) {
	p, foreseen := c.errors.problem(err)
	if p.Status == statusGone && r.Context().Err() == nil {
		// Somebody cancelled a context of their own, and the client waits.
		p, foreseen = Errors(nil).problem(errInternal)
	}
	if !foreseen && c.report != nil {
		c.report(r.Context(), c.pattern, err)
	}
	t.write(w.Header())
	p.write(w, c.base)
}

var errInternal = errors.New("internal")
