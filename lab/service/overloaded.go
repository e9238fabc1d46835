package service

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/loadgen"
)

// Patience is how long after its deadline a client drops its connection.
const Patience = 250 * time.Millisecond

// Multiple is the name of a load that is so many times what the service can do, such as "1.5x".
func Multiple(times float64) string { return strconv.FormatFloat(times, 'g', -1, 64) + "x" }

// Deadline is the header by which clients tell the service how long they wait.
func Deadline(d time.Duration) http.Header {
	return http.Header{admissionhttp.HeaderDeadline: {strconv.FormatInt(d.Milliseconds(), 10)}}
}

// InTime makes each answer after the deadline a timeout, whatever it says. A refusal stays one.
func InTime(target loadgen.Target, deadline time.Duration) loadgen.Target {
	return loadgen.TargetFunc(func(ctx context.Context, n uint64) loadgen.Outcome {
		sent := time.Now()
		outcome := target.Do(ctx, n)
		if outcome != loadgen.Rejected && time.Since(sent) >= deadline {
			outcome = loadgen.Timeout
		}
		return outcome
	})
}

// Capacity is the most good answers a second that several numbers of clients, which ask back to
// back, get of a service, and the first of the numbers that gets so large a share of it.
func Capacity(clients []int, share float64, load func(clients int) (*loadgen.Result, error)) (most float64, enough int, err error) {
	good := make([]float64, len(clients))
	for i, n := range clients {
		res, err := load(n)
		if err != nil {
			return 0, 0, err
		}
		good[i] = res.Goodput()
	}
	if most = slices.Max(good); most <= 0 {
		return 0, 0, errors.New("nothing was answered in time while the capacity was measured")
	}
	return most, clients[slices.IndexFunc(good, func(x float64) bool { return x >= share*most })], nil
}
