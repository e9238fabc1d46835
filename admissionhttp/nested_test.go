package admissionhttp_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/limiter"
)

// reaching wraps writers as most middleware does; hiding has no Unwrap.
type (
	reaching struct{ http.ResponseWriter }
	hiding   struct{ http.ResponseWriter }
)

func (w reaching) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// A request that passed two middlewares over one limiter took two slots, and waited for the second
// with the first one held.
func TestARequestTakesOneSlotOfALimiter(t *testing.T) {
	none := func(h http.Handler) http.Handler { return h }
	reach := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(reaching{w}, r) })
	}
	hide := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(hiding{w}, r) })
	}
	timeout := func(h http.Handler) http.Handler { return http.TimeoutHandler(h, time.Minute, "") }
	critical := func(h http.Handler) http.Handler { return admissionhttp.WithPriority(spillway.Critical, h) }
	another := middleware(t, admissionhttp.Config{Limiter: one(t), Deadlines: byPriority.Deadlines})
	for name, c := range map[string]struct {
		cfg     admissionhttp.Config
		between []func(http.Handler) http.Handler
		want    uint64 // 0 means 1
	}{
		"nothing between":          {between: []func(http.Handler) http.Handler{none}},
		"a priority":               {between: []func(http.Handler) http.Handler{critical}},
		"other writers":            {between: []func(http.Handler) http.Handler{reach, critical, reach}},
		"another limiter":          {between: []func(http.Handler) http.Handler{reach, another, reach}},
		"with a deadline, hidden":  {cfg: byPriority, between: []func(http.Handler) http.Handler{hide, reach}},
		"with Hold, hidden":        {cfg: admissionhttp.Config{Hold: true}, between: []func(http.Handler) http.Handler{hide}},
		"with a deadline, timeout": {cfg: byPriority, between: []func(http.Handler) http.Handler{timeout}},
		"with a deadline, both":    {cfg: byPriority, between: []func(http.Handler) http.Handler{hide, another, hide}},
		"hidden, no context":       {between: []func(http.Handler) http.Handler{hide}, want: 2}, // to find it would cost every request
	} {
		t.Run(name, func(t *testing.T) {
			lim, _ := taught(t, 2)
			c.cfg.Limiter = lim
			admit := middleware(t, c.cfg)
			inFlight := 0
			h := admit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inFlight = lim.Stats().InFlight }))
			for _, wrap := range c.between {
				h = wrap(h)
			}
			mux := http.NewServeMux()
			mux.Handle("/orders", h)
			want := max(c.want, 1)
			if w := get(admit(mux), "/orders"); w.Code != 200 || inFlight != int(want) || lim.Stats().Offered != want {
				t.Errorf("%d, %d in flight, %d offered, want %d", w.Code, inFlight, lim.Stats().Offered, want)
			}
			atRest(t, lim, want)
		})
	}
}

func TestLimitersOfTheirOwnAreBothAsked(t *testing.T) {
	outer, inner := one(t), one(t)
	h := middleware(t, admissionhttp.Config{Limiter: outer})(middleware(t, admissionhttp.Config{Limiter: inner})(ok))
	if w := get(h, "/"); w.Code != 200 {
		t.Errorf("%d", w.Code)
	}
	atRest(t, outer, 1)
	atRest(t, inner, 1)

	family := must(limiter.NewKeyed(limiter.KeyedConfig{}))
	classed := func(class string) func(http.Handler) http.Handler {
		return middleware(t, admissionhttp.Config{Keyed: family, Class: func(*http.Request) string { return class }})
	}
	if w := get(classed("a")(classed("a")(classed("b")(classed("a")(ok)))), "/"); w.Code != 200 {
		t.Errorf("%d", w.Code)
	}
	for key, s := range family.All() {
		if s.Offered != 1 || s.Completed != 1 {
			t.Errorf("%s: %d offered", key, s.Offered)
		}
	}
}

// A handler that outlives its slot, as after http.TimeoutHandler, has none.
func TestASlotThatWasGivenBackIsAskedForAgain(t *testing.T) {
	lim := one(t)
	admit := middleware(t, admissionhttp.Config{Limiter: lim, Deadlines: byPriority.Deadlines})
	var left *http.Request
	var writer http.ResponseWriter
	get(admit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { writer, left = w, r })), "/")
	inFlight := 0
	admit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inFlight = lim.Stats().InFlight })).ServeHTTP(writer, left.WithContext(t.Context()))
	if inFlight != 1 {
		t.Errorf("%d in flight", inFlight)
	}
	atRest(t, lim, 2)
}

// A middleware inside that holds nothing does not hide the slot from Hold.
func TestHoldFindsTheMiddlewareThatHolds(t *testing.T) {
	lim := one(t)
	var release func()
	inner := middleware(t, admissionhttp.Config{Limiter: one(t), Deadlines: byPriority.Deadlines})
	h := middleware(t, admissionhttp.Config{Limiter: lim, Hold: true})(inner(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		release = admissionhttp.Hold(r.Context())
	})))
	get(h, "/")
	if n := lim.Stats().InFlight; n != 1 {
		t.Errorf("%d in flight", n)
	}
	release()
	atRest(t, lim, 1)
}
