package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/load/loadgen"
)

// Load is an open loop with Poisson arrivals: clients that do not wait for each other.
type Load struct {
	Stretches []Stretch     // one after the other, without a gap
	Measured  int           // which of them counts
	Timeout   time.Duration // of a request; 0: none
	Seed      uint64        // of the arrivals
	Fills     bool          // the stretches behind the one that counts only keep the load up: they end when all of that is answered
}

// Stretch is a part of a load.
type Stretch struct {
	Rate float64 // requests a second
	For  time.Duration
}

// Window is when the stretch that counts begins and ends, if the load begins now.
func (l Load) Window() (from, to time.Time) {
	from = time.Now()
	for _, s := range l.Stretches[:l.Measured] {
		from = from.Add(s.For)
	}
	return from, from.Add(l.Stretches[l.Measured].For)
}

// StretchOf is the stretch to which request n belongs.
func StretchOf(n uint64) int { return int(n >> 32) }

// Do sends request n and is told whether it counts.
type Do func(ctx context.Context, n uint64, counts bool) loadgen.Outcome

// Send sends the load. It returns the result of the stretch that counts: of the requests
// intended in it, whenever they were answered.
func (l Load) Send(ctx context.Context, do Do) (*loadgen.Result, error) {
	targets := make([]loadgen.Target, len(l.Stretches))
	for i := range targets {
		targets[i] = loadgen.TargetFunc(func(ctx context.Context, n uint64) loadgen.Outcome {
			return do(ctx, uint64(i)<<32+n, i == l.Measured)
		})
	}
	return l.SendTo(ctx, targets)
}

// SendTo is Send with a target for each stretch; the result has the target's classes.
func (l Load) SendTo(ctx context.Context, targets []loadgen.Target) (*loadgen.Result, error) {
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	done, errs := make([]*loadgen.Result, len(l.Stretches)), make([]error, len(l.Stretches))
	var all sync.WaitGroup
	for i, s := range l.Stretches {
		cfg := loadgen.Config{Target: targets[i], Open: loadgen.Poisson(s.Rate, s.For, l.Seed%1e6+uint64(i)), Timeout: l.Timeout, Interval: Step}
		all.Go(func() {
			done[i], errs[i] = loadgen.Run(ctx, cfg)
			if i == l.Measured && l.Fills {
				enough()
			}
		})
		select {
		case <-time.After(s.For): // its last answers come later
		case <-ctx.Done():
		}
	}
	all.Wait()
	return done[l.Measured], errors.Join(errs...)
}

// Ask sends a request and reads its answer. Shed says that the service refused it; a
// transport of admissionhttp/client may refuse it before it is sent.
func Ask(t http.RoundTripper, req *http.Request) (outcome loadgen.Outcome, shed bool) {
	resp, err := t.RoundTrip(req)
	if err == nil {
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
	}
	switch {
	case errors.Is(err, spillway.ErrRejected):
		return loadgen.Rejected, false
	case req.Context().Err() != nil, err == nil && resp.StatusCode == http.StatusGatewayTimeout:
		return loadgen.Timeout, false
	case err == nil && resp.StatusCode == http.StatusOK:
		return loadgen.OK, false
	case err == nil && (resp.StatusCode == http.StatusServiceUnavailable || resp.StatusCode == http.StatusTooManyRequests):
		return loadgen.Rejected, true
	}
	return loadgen.Error, false
}

// Deadline is the header by which clients tell the service how long they wait.
func Deadline(d time.Duration) http.Header {
	return http.Header{admissionhttp.HeaderDeadline: {strconv.FormatInt(d.Milliseconds(), 10)}}
}

// Patients asks a service for the patients of id, and counts good answers about another
// one: they must be none. A target keeps only its first error, and the store may fail, too.
func Patients(url string, header http.Header, id func(n uint64) string, foreign *atomic.Int64) (*loadgen.HTTP, error) {
	return loadgen.NewHTTP(loadgen.HTTPConfig{
		Header: header,
		URLFor: func(n uint64) string { return url + "/api/v1/patients/" + id(n) },
		Check: func(n uint64, _ int, body []byte) error {
			if !bytes.HasPrefix(body, []byte(`{"id":"`+id(n)+`"`)) {
				foreign.Add(1)
				return fmt.Errorf("request %d: an answer about another patient", n)
			}
			return nil
		},
	})
}
