package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progress tells a person how far a batch has come: one line that is redrawn on
// a terminal, a line now and then elsewhere.
type progress struct {
	w     io.Writer
	live  bool
	every time.Duration
}

func newProgress(w io.Writer, live bool) *progress {
	if live {
		return &progress{w, true, 200 * time.Millisecond}
	}
	return &progress{w, false, 5 * time.Second}
}

// start reports until the returned function is called.
func (p *progress) start(b *batch) (stop func()) {
	var reporting sync.WaitGroup
	quit := make(chan struct{})
	reporting.Go(func() {
		tick := time.NewTicker(p.every)
		defer tick.Stop()
		pace := pace{at: time.Now()}
		for {
			select {
			case <-quit:
				if p.live {
					fmt.Fprint(p.w, "\r\x1b[K")
				}
				return
			case now := <-tick.C:
				pace.look(now, b.done.Load()+b.failed.Load())
				p.show(b, pace.perSecond)
			}
		}
	})
	return func() { close(quit); reporting.Wait() }
}

func (p *progress) show(b *batch, perSecond float64) {
	total := b.tasks - b.from
	eta := "–"
	if perSecond > 0 {
		eta = rough(time.Duration(float64(b.left()) / perSecond * float64(time.Second)))
	}
	line := fmt.Sprintf("%3d %%  %s/s  %s of %s done, %s failed, %s left", 100*(total-b.left())/total, number(int64(perSecond)),
		number(b.done.Load()), number(int64(total)), number(b.failed.Load()), eta)
	if p.live {
		fmt.Fprintf(p.w, "\r%s\x1b[K", line)
		return
	}
	fmt.Fprintln(p.w, line)
}

// pace is how many tasks end a second: what the last looks saw counts more than
// what the first ones did.
type pace struct {
	at        time.Time
	ended     int64
	perSecond float64
}

func (p *pace) look(now time.Time, ended int64) {
	seconds := now.Sub(p.at).Seconds()
	if seconds <= 0 {
		return
	}
	rate := float64(ended-p.ended) / seconds
	if p.perSecond > 0 {
		rate = .8*p.perSecond + .2*rate
	}
	p.at, p.ended, p.perSecond = now, ended, rate
}
