package patterns

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/loadgen"
)

// clients send requests to a service: look-ups by id are critical, searches are not, and
// what is in the directory may be locked.
type clients struct {
	lookup, search, directory *loadgen.HTTP

	foreign atomic.Int64 // answers about another patient
}

func newClients(address string) (*clients, error) {
	c := &clients{}
	patience := service.Deadline(inTime)
	base := "http://" + address + "/api/v1/"
	id := func(n uint64) string { return fmt.Sprintf("P%06d", 1+n*7919%scarcePatients) }
	var err1, err2, err3 error
	c.lookup, err1 = service.Patients("http://"+address, patience, id, &c.foreign)
	c.search, err2 = loadgen.NewHTTP(loadgen.HTTPConfig{Header: patience, URLFor: func(n uint64) string { return base + "patients?id=" + id(n) }})
	c.directory, err3 = loadgen.NewHTTP(loadgen.HTTPConfig{URL: base + "clinicians?" + url.Values{"email": {"team@org01.example"}, "org": {"Weir Road Surgery"}, "cache": {"false"}}.Encode()})
	return c, errors.Join(err1, err2, err3)
}

func (c *clients) close() {
	for _, h := range []*loadgen.HTTP{c.lookup, c.search, c.directory} {
		h.Close()
	}
}

// inTime is how long a user waits, whatever the service would allow.
const inTime = 2 * time.Second

// counted is how many requests were sent, and how many of them were answered well in time.
type counted struct {
	target *loadgen.HTTP

	sent, good atomic.Uint64
}

// Do implements loadgen.Target.
func (c *counted) Do(ctx context.Context, n uint64) loadgen.Outcome {
	outcome, _ := c.ask(ctx, n)
	return outcome
}

// ask returns what Retry-After says as well. What is answered late is late, whatever the
// answer.
func (c *counted) ask(ctx context.Context, n uint64) (loadgen.Outcome, time.Duration) {
	c.sent.Add(1)
	began := time.Now()
	outcome, after := c.target.Ask(ctx, n)
	switch {
	case outcome == loadgen.OK && time.Since(began) > inTime:
		return loadgen.Timeout, 0
	case outcome == loadgen.OK:
		c.good.Add(1)
	}
	return outcome, after
}

// addShare adds the share of the good ones, in per cent, if any were sent.
func (c *counted) addShare(run *results.Run) {
	if sent := c.sent.Load(); sent > 0 {
		run.Extra[criticalShare.Key] = 100 * float64(c.good.Load()) / float64(sent)
	}
}

// Waits of a client that was refused, unless the service asks for a longer one: a second,
// and then twice as long, and a random half more.
const (
	firstPause = time.Second
	mostPause  = 2 * time.Second
)

// insist asks again until it is answered or ctx ends, as a client does that heeds
// Retry-After.
func (c *counted) insist(ctx context.Context, n uint64) loadgen.Outcome {
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		outcome, after := c.ask(ctx, n)
		if outcome == loadgen.OK || ctx.Err() != nil {
			return outcome
		}
		if service.Pause(ctx, max(after, pause)+rand.N(pause/2)) != nil {
			return outcome
		}
	}
}
