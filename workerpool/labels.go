package workerpool

import (
	"cmp"
	"context"
	"runtime/pprof"
	"unsafe"

	"github.com/spillway-go/spillway/internal/priority"
)

// labels are the profile labels of a pool's workers.
type labels struct {
	key any                  // key under which runtime/pprof looks up labels in a context
	of  [levels + 1]labelled // one for each level of the current job, and one for no job
}

const noJob = levels

// labelled is a context that has labels and nothing else: Value returns the labels for any key.
type labelled struct {
	context.Context
	set    pprof.LabelSet
	labels any // the set, in the form that contexts hold
}

// Value returns the labels.
func (l *labelled) Value(any) any { return l.labels }

// asked is a context that records the key of a Value call.
type asked struct {
	context.Context
	key any
}

// Value records key and returns nil.
func (a *asked) Value(key any) any {
	a.key = key
	return nil
}

func newLabels(name string) *labels {
	nothing := &asked{Context: context.Background()}
	pprof.ForLabels(nothing, func(string, string) bool { return true })
	all := &labels{key: nothing.key}
	for lv := range all.of {
		set := []string{"pool", cmp.Or(name, "workerpool")}
		if lv != noJob {
			set = append(set, "priority", priority.Of(lv).String())
		}
		l := &all.of[lv]
		l.Context, l.set = context.Background(), pprof.Labels(set...)
		l.labels = pprof.WithLabels(l.Context, l.set).Value(all.key)
	}
	return all
}

// setLabels sets the profile labels for the current job: the labels of its context, if any, and of the
// pool. The job before may have left other labels, whatever its context held. Checking the labels
// costs as much as setting them. So of consecutive jobs of one context that come faster than the
// sampling rate, jobs that are not sampled keep the labels they find.
func (w *worker) setLabels() {
	if !same(w.entry.ctx, w.seen) {
		w.relabel()
	}
}

// relabel sets the labels after a search of the current job's whole context.
func (w *worker) relabel() {
	ctx := w.entry.ctx
	w.seen = ctx
	all := w.pool.labels
	own := &all.of[w.lv]
	if w.foreign = ctx.Value(all.key) != nil; w.foreign {
		pprof.SetGoroutineLabels(pprof.WithLabels(ctx, own.set))
	} else {
		pprof.SetGoroutineLabels(own)
	}
}

// unmark removes the labels of a context from a worker that has no job.
func (w *worker) unmark() {
	w.seen = nil
	if w.foreign {
		w.foreign = false
		pprof.SetGoroutineLabels(&w.pool.labels.of[noJob])
	}
}

// same reports whether a and b are one context. It compares their words, because == panics for some
// types.
func same(a, b context.Context) bool {
	return *(*[2]uintptr)(unsafe.Pointer(&a)) == *(*[2]uintptr)(unsafe.Pointer(&b))
}
