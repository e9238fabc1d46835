package workerpool

import (
	"cmp"
	"context"
	"runtime/pprof"
	"unsafe"

	"github.com/spillway-go/spillway"
)

// labels are the profile labels of a pool's workers: by the level of the job at hand, and
// the last for a worker without one.
type labels [levels + 1]labelled

// noJob is where the labels of a worker without a job are.
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

// asked is a context that keeps the answer to what it was asked for last.
type asked struct {
	context.Context
	answer any
}

// Value returns what the context inside does.
func (a *asked) Value(key any) any {
	a.answer = a.Context.Value(key)
	return a.answer
}

func newLabels(name string) *labels {
	all := new(labels)
	for lv := range all {
		set := []string{"pool", cmp.Or(name, "workerpool")}
		if lv != noJob {
			set = append(set, "priority", (spillway.Critical - spillway.Priority(lv)).String())
		}
		l := &all[lv]
		l.Context, l.set = context.Background(), pprof.Labels(set...)
		a := &asked{Context: pprof.WithLabels(l.Context, l.set)}
		hasLabels(a)
		l.labels = a.answer
	}
	return all
}

// mark sets the profile labels for the job at hand: those of its context, if it has any, and
// those of the pool. The job before may have left others, whatever its context said. To find
// that out costs as much as to set them: so of jobs of one context that follow each other
// faster than jobs are sampled, those that are not sampled keep what they find.
func (w *worker) mark() {
	ctx := w.entry.ctx
	if same(ctx, w.seen) {
		return
	}
	w.seen = ctx
	own := &w.pool.labels[w.lv]
	if hasLabels(ctx) {
		pprof.SetGoroutineLabels(pprof.WithLabels(ctx, own.set))
	} else {
		pprof.SetGoroutineLabels(own)
	}
}

// unmark sets the profile labels of a worker that has no job.
func (w *worker) unmark() {
	w.seen = nil
	pprof.SetGoroutineLabels(&w.pool.labels[noJob])
}

// same reports whether a and b are one context, by their words: the operator panics for some
// types.
func same(a, b context.Context) bool {
	return *(*[2]uintptr)(unsafe.Pointer(&a)) == *(*[2]uintptr)(unsafe.Pointer(&b))
}

// hasLabels looks through all of a context.
func hasLabels(ctx context.Context) (has bool) {
	pprof.ForLabels(ctx, func(string, string) bool { has = true; return false })
	return has
}
