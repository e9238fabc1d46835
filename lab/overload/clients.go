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

	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/loadgen"
)

const (
	criticalEvery = 5                      // requests, one is critical
	patience      = 250 * time.Millisecond // after the deadline a client drops its connection
)

// clients send requests to the service like its real clients: with a deadline and a
// priority in the headers.
type clients struct {
	ordinary, critical *loadgen.HTTP
	deadline           time.Duration

	criticalSent, criticalOK atomic.Uint64 // of those that count
	foreign                  atomic.Uint64 // answers about another patient: must be 0
}

var errForeign = errors.New("not the patient that was asked for")

func newClients(address string, patients int, deadline time.Duration) (*clients, error) {
	c := &clients{deadline: deadline}
	id := func(n uint64) string { return fmt.Sprintf("P%06d", 1+n*7919%uint64(patients)) }
	target := func(header http.Header) (*loadgen.HTTP, error) {
		header.Set(admissionhttp.HeaderDeadline, strconv.FormatInt(deadline.Milliseconds(), 10))
		return loadgen.NewHTTP(loadgen.HTTPConfig{
			Header: header,
			URLFor: func(n uint64) string { return "http://" + address + "/api/v1/patients/" + id(n) },
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
	c.critical, err = target(http.Header{admissionhttp.HeaderPriority: {"critical"}})
	return c, err
}

// do sends request n. Any answer after the deadline is a timeout, including the
// service's own 504.
func (c *clients) do(ctx context.Context, n uint64, counts bool) loadgen.Outcome {
	target, important := c.ordinary, n%criticalEvery == 0
	if important {
		target = c.critical
	}
	sent := time.Now()
	outcome := target.Do(ctx, n)
	if outcome != loadgen.Rejected && time.Since(sent) >= c.deadline {
		outcome = loadgen.Timeout
	}
	if important && counts {
		c.criticalSent.Add(1)
		if outcome == loadgen.OK {
			c.criticalOK.Add(1)
		}
	}
	return outcome
}

func (c *clients) close() {
	c.ordinary.Close()
	c.critical.Close()
}
