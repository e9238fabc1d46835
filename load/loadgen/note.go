package loadgen

import (
	"context"
	"errors"
	"net/http/httptrace"
	"sync"
	"time"

	"github.com/spillway-go/spillway/histogram"
)

// Phase is a part of requests. A request on a kept connection has the last phase only.
type Phase struct {
	Name string              // dns, connect, tls or first byte
	Took histogram.Histogram // nanoseconds
}

const (
	phaseDNS       = iota
	phaseConnect   // of a TCP connection, also to a proxy
	phaseTLS       // the handshake
	phaseFirstByte // from sending the request on its connection to the first byte of the answer
	phases
)

var phaseNames = [phases]string{"dns", "connect", "tls", "first byte"}

// note is what an HTTP target tells the run about a request beside the outcome. Each sending
// goroutine has a note, in the context of its requests. If a target sends several requests for one,
// the note is about the last answer.
type note struct {
	mu sync.Mutex
	noted
}

type noted struct {
	there     bool // the target has told something
	status    int
	err       error
	reason    string
	durations [phases]time.Duration // 0: the request had no such phase
}

type noteKey struct{}

// noteOf returns the note in ctx, or nil.
func noteOf(ctx context.Context) *note {
	n, _ := ctx.Value(noteKey{}).(*note)
	return n
}

// answered notes the end of a request.
func (n *note) answered(got *answer, err error) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.there, n.status, n.reason, n.err = true, got.status, got.reason, err
	if got.firstByte > 0 {
		n.durations[phaseFirstByte] = got.firstByte
	}
}

// phase notes how long a phase took.
func (n *note) phase(phase int, since time.Time) {
	if n == nil || since.IsZero() {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.there, n.durations[phase] = true, max(time.Since(since), 1)
}

// take returns what was noted, and empties the note.
func (n *note) take() noted {
	n.mu.Lock()
	defer n.mu.Unlock()
	got := n.noted
	if got.there {
		n.noted = noted{}
	}
	return got
}

// cause returns what the outcome of a request came from, for one request.
func (n *noted) cause(outcome Outcome) Cause {
	c := Cause{Outcome: outcome, Status: n.status, Text: n.reason, Count: 1}
	_, isStatus := errors.AsType[statusError](n.err)
	switch {
	case n.err == nil || isStatus:
	case outcome == Timeout:
		c.Status, c.Text = 0, "no complete answer in time"
	default:
		c.Text = textOf(n.err)
		if _, checked := n.err.(checkError); !checked {
			c.Status = 0
		}
		if s := shortageBehind(n.err); s != nil {
			c.Local, c.Text = true, s.text()+c.Text
		}
	}
	return c
}

// dialing returns ctx, with which a dialer of package net tells n how long it takes.
func (n *note) dialing(ctx context.Context) context.Context {
	if n == nil {
		return ctx
	}
	var mu sync.Mutex // several addresses may be tried at once
	var dns, connect time.Time
	began := func(t *time.Time) {
		mu.Lock()
		defer mu.Unlock()
		if t.IsZero() {
			*t = time.Now()
		}
	}
	ended := func(phase int, t *time.Time, err error) {
		mu.Lock()
		since := *t
		mu.Unlock()
		if err == nil {
			n.phase(phase, since)
		}
	}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		DNSStart:     func(httptrace.DNSStartInfo) { began(&dns) },
		DNSDone:      func(i httptrace.DNSDoneInfo) { ended(phaseDNS, &dns, i.Err) },
		ConnectStart: func(string, string) { began(&connect) },
		ConnectDone:  func(_, _ string, err error) { ended(phaseConnect, &connect, err) },
	})
}
