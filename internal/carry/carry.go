// Package carry is what a context says about its work, found in one look: each look
// walks up a request's contexts, and a limiter needs all of it every time.
package carry

import "context"

// Work is a context that says how important its work is, what it costs and of which kind it is. It is not
// changed after it was made.
type Work struct {
	context.Context
	Priority int8
	Cost     int32  // in slots; zero: not said
	Kind     string // empty: not said
}

type key struct{}

// Value returns the Work itself, or what its parent says.
func (w *Work) Value(k any) any {
	if k == (key{}) {
		return w
	}
	return w.Context.Value(k)
}

// From returns the innermost Work of ctx, or nil.
func From(ctx context.Context) *Work {
	w, _ := ctx.Value(key{}).(*Work)
	return w
}

// In returns a copy of that, to be changed and used in place of ctx.
func In(ctx context.Context) *Work {
	w := &Work{Context: ctx}
	if outer := From(ctx); outer != nil {
		w.Priority, w.Cost, w.Kind = outer.Priority, outer.Cost, outer.Kind
	}
	return w
}
