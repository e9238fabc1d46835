// Package carry stores the priority, the cost and the kind of work in one context value,
// because each lookup walks up a request's contexts and a limiter needs all three each time.
package carry

import "context"

// Work is a context with the priority, the cost and the kind of its work. A Work is immutable
// once it is in use.
type Work struct {
	context.Context
	Priority int8
	Cost     int    // in slots; zero: not set
	Kind     string // empty: not set
}

type key struct{}

// Value returns w itself for the package's key, else the value of the parent.
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

// In returns a child of ctx with a copy of the innermost Work. The caller changes the copy
// before use.
func In(ctx context.Context) *Work {
	w := &Work{Context: ctx}
	if outer := From(ctx); outer != nil {
		w.Priority, w.Cost, w.Kind = outer.Priority, outer.Cost, outer.Kind
	}
	return w
}
