package overload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/loadgen"
)

// criticalEvery makes every fifth request critical.
const criticalEvery = 5

// clients sends requests to the service like its real clients: with a deadline and a
// priority in the headers. It is a loadgen.Target.
type clients struct {
	ordinary, critical *loadgen.HTTP
	deadline           time.Duration

	criticalSent, criticalOK atomic.Uint64
	foreign                  atomic.Uint64 // answers about another patient: must be 0
}

var errForeign = errors.New("not the patient that was asked for")

func newClients(url string, patients int, deadline time.Duration) (*clients, error) {
	c := &clients{deadline: deadline}
	id := func(n uint64) string { return fmt.Sprintf("P%06d", 1+n*7919%uint64(patients)) }
	target := func(header http.Header) (*loadgen.HTTP, error) {
		header.Set(TimeoutHeader, strconv.FormatInt(deadline.Milliseconds(), 10))
		return loadgen.NewHTTP(loadgen.HTTPConfig{
			Header: header,
			URLFor: func(n uint64) string { return url + "/api/v1/patients/" + id(n) },
			Check: func(n uint64, _ int, body []byte) error {
				if !bytes.HasPrefix(body, []byte(`{"id":"`+id(n)+`"`)) {
					c.foreign.Add(1)
					return errForeign
				}
				return nil
			},
		})
	}
	var err error
	if c.ordinary, err = target(http.Header{}); err != nil {
		return nil, err
	}
	c.critical, err = target(http.Header{http.CanonicalHeaderKey(PriorityHeader): {Critical}})
	return c, err
}

// Do implements loadgen.Target. Any answer after the deadline is a timeout, including
// the service's own 504.
func (c *clients) Do(ctx context.Context, n uint64) loadgen.Outcome {
	target, important := c.ordinary, n%criticalEvery == 0
	if important {
		target = c.critical
		c.criticalSent.Add(1)
	}
	sent := time.Now()
	outcome := target.Do(ctx, n)
	if outcome != loadgen.Rejected && time.Since(sent) >= c.deadline {
		outcome = loadgen.Timeout
	}
	if important && outcome == loadgen.OK {
		c.criticalOK.Add(1)
	}
	return outcome
}

func (c *clients) close() {
	c.ordinary.Close()
	c.critical.Close()
}

// patience is how long after the deadline a client drops its connection.
const patience = 250 * time.Millisecond

// open is an open loop at that rate.
func (c *clients) open(rate float64, d time.Duration, seed uint64, step time.Duration) loadgen.Config {
	return loadgen.Config{Target: c, Open: loadgen.Poisson(rate, d, seed), Timeout: c.deadline + patience, Interval: step}
}

// warmThenMeasure sends one continuous stream and returns its second part: the start
// and the result. The counts of critical requests are
// those of the second part too.
func (c *clients) warmThenMeasure(ctx context.Context, rate float64, warm, measure time.Duration, seed uint64, step time.Duration) (time.Time, *loadgen.Result, error) {
	warmed := make(chan error, 1)
	prelude := &clients{ordinary: c.ordinary, critical: c.critical, deadline: c.deadline}
	go func() {
		_, err := loadgen.Run(ctx, prelude.open(rate, warm, seed, step))
		warmed <- err
	}()
	select {
	case <-time.After(warm): // its last answers arrive later
	case <-ctx.Done():
	}
	began := time.Now()
	res, err := loadgen.Run(ctx, c.open(rate, measure, seed+1, step))
	return began, res, errors.Join(err, <-warmed)
}
