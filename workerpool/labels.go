package workerpool

import (
	"cmp"
	"context"
	"runtime/pprof"
	"unsafe"

	"github.com/spillway-go/spillway"
)

// labels are the profile labels of a pool's workers.
type labels struct {
	key any                  // that contexts are asked for by whoever wants their labels
	of  [levels + 1]labelled // for each level of the job at hand, and for no job
}

const noJob = levels

// labelled is a context that has labels and nothing else, so that they are what it is asked
// for.
type labelled struct {
	context.Context
	set    pprof.LabelSet
	labels any // the same, as contexts have it
}

// Value returns the labels.
func (l *labelled) Value(any) any { return l.labels }

// asked is a context that keeps what it was asked for.
type asked struct {
	context.Context
	key any
}

// Value has nothing.
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
			set = append(set, "priority", (spillway.Critical - spillway.Priority(lv)).String())
		}
		l := &all.of[lv]
		l.Context, l.set = context.Background(), pprof.Labels(set...)
		l.labels = pprof.WithLabels(l.Context, l.set).Value(all.key)
	}
	return all
}

// mark sets the profile labels for the job at hand: those of its context, if it has any, and
// those of the pool. The job before may have left others, whatever its context said. To find
// that out costs as much as to set them: so of jobs of one context that follow each other
// faster than jobs are sampled, those that are not sampled keep what they find.
func (w *worker) mark() {
	if !same(w.entry.ctx, w.seen) {
		w.relabel()
	}
}

// relabel looks through all of the context of the job at hand.
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

// unmark takes the labels of a context from a worker that has no job.
func (w *worker) unmark() {
	w.seen = nil
	if w.foreign {
		w.foreign = false
		pprof.SetGoroutineLabels(&w.pool.labels.of[noJob])
	}
}

// same reports whether a and b are one context, by their words: the operator panics for some
// types.
func same(a, b context.Context) bool {
	return *(*[2]uintptr)(unsafe.Pointer(&a)) == *(*[2]uintptr)(unsafe.Pointer(&b))
}
