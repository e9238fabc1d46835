package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/lab/durable"
)

// engine takes jobs.
type engine struct {
	put   func(ctx context.Context, payload []byte) error // returns when the job is as safe as it will be
	close func() error
	count func() (uint64, error) // how many there are, read anew after close
}

var errNothing = errors.New("nothing was acknowledged")

// bout has callers enqueue for a while, and returns the figures.
func bout(ctx context.Context, b durable.Bout) (figures map[string]float64, err error) {
	folder, err := os.MkdirTemp(b.Folder, "spillway-durable-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	opening, known := engines[b.Contestant]
	if !known {
		return nil, fmt.Errorf("unknown contestant %q", b.Contestant)
	}
	e, err := opening(ctx, folder)
	if err != nil {
		return nil, err
	}
	d := drive(ctx, b, e.put)
	if err := errors.Join(d.err, e.close(), ctx.Err()); err != nil {
		return nil, err
	}
	if d.acknowledged == 0 {
		return nil, errNothing
	}
	stored, err := e.count()
	return map[string]float64{
		"rate": float64(d.took.Count()) / b.Timed.Seconds(),
		"p50":  float64(d.took.Quantile(.5)), "p99": float64(d.took.Quantile(.99)),
		"missing": float64(d.acknowledged - min(stored, d.acknowledged)),
	}, err
}

// driven is what callers saw.
type driven struct {
	acknowledged uint64
	took         histogram.Histogram // of calls that ended within the measured time
	err          error
}

func drive(ctx context.Context, b durable.Bout, put func(context.Context, []byte) error) *driven {
	d := new(driven)
	var acknowledged atomic.Uint64
	var mu sync.Mutex
	var callers sync.WaitGroup
	from := time.Now().Add(b.WarmUp)
	until := from.Add(b.Timed)
	for range b.Callers {
		callers.Go(func() {
			var took histogram.Histogram
			var err error
			for payload := make([]byte, b.Bytes); err == nil && ctx.Err() == nil; {
				began := time.Now()
				if !began.Before(until) {
					break
				}
				if err = put(ctx, payload); err == nil {
					acknowledged.Add(1)
					if now := time.Now(); now.After(from) && now.Before(until) {
						took.Record(int64(now.Sub(began)))
					}
				}
			}
			mu.Lock()
			defer mu.Unlock()
			d.took.Merge(&took)
			d.err = errors.Join(d.err, err)
		})
	}
	callers.Wait()
	d.acknowledged = acknowledged.Load()
	return d
}
