package export

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/access"
	"github.com/spillway-go/spillway/examples/patientapi/internal/discreet"
	"github.com/spillway-go/spillway/jobqueue"
)

const (
	// fruitless is how many runs of a job may end without a part, or in a crash, before
	// its export has failed. With the back-off of Policy this is a quarter of an hour.
	fruitless = 20
	// heartbeat is how often a job says that it is alive, and looks whether its export is.
	heartbeat = 2 * time.Second
)

// Run does the jobs of exports until ctx ends, and deletes exports that have expired. Then
// a part that is under way ends early and is kept, or is left; the job goes on in the next
// process.
func (e *Exports) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	var sweeping sync.WaitGroup
	sweeping.Go(func() { e.sweep(ctx) })
	defer sweeping.Wait()
	defer stop()
	return e.cfg.Queue.Work(ctx, e.do)
}

// do does one run of a job.
func (e *Exports) do(ctx context.Context, d *jobqueue.Delivery) error {
	ticket := string(d.Payload)
	if !access.Ticket(ticket) {
		return jobqueue.Dead("the payload is not the name of an export")
	}
	x, err := e.disk.load(ticket)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil
	case err == nil && x.end != nil:
		return x.end.outcome()
	case err == nil && d.Attempt-x.last().Attempt > fruitless: // those before have not come to what is below
		return e.fail(ticket, errCrashed)
	}
	attempt := x.last().Attempt
	if err == nil {
		err = e.write(ctx, d, ticket, x)
		attempt = x.last().Attempt
	}
	switch now, gone := e.disk.load(ticket); {
	case errors.Is(gone, ErrNotFound):
		return nil
	case gone == nil && now.end != nil: // by this worker or by another
		return now.end.outcome()
	case err == nil:
		return gone
	case errors.Is(err, ErrDamaged):
		return e.fail(ticket, err)
	case ctx.Err() != nil, errors.Is(err, spillway.ErrRejected), errors.Is(err, errTaken):
		return err
	case d.Attempt-attempt >= fruitless:
		return e.fail(ticket, err)
	}
	e.cfg.Logger.Warn("an export is tried again", "export", ticket[:8], "run", d.Attempt, "error", discreet.Text(err.Error()))
	return err
}

// write writes what is missing of an export.
func (e *Exports) write(ctx context.Context, d *jobqueue.Delivery, ticket string, x *stored) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var beating sync.WaitGroup
	defer beating.Wait()
	over := make(chan struct{})
	defer close(over)
	beating.Go(func() { e.beat(ctx, over, d, ticket, stop) })
	for more := true; more; {
		var err error
		if more, err = e.next(ctx, ticket, x, d.Attempt); err != nil {
			return err
		}
	}
	err := e.disk.finish(ticket, ending{State: Complete, Parts: len(x.parts)})
	if err == nil {
		e.cfg.Logger.Info("an export is complete", "export", ticket[:8], "patients", x.last().Total)
	}
	return err
}

// beat tells the queue that the job is worked on, and the job that its export is gone.
func (e *Exports) beat(ctx context.Context, over <-chan struct{}, d *jobqueue.Delivery, ticket string, stop context.CancelCauseFunc) {
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-over:
			return
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		_ = d.Progress(ctx) // where the job is lost, ctx ends
		if _, err := os.Stat(e.disk.path(ticket)); errors.Is(err, os.ErrNotExist) {
			stop(ErrNotFound)
		}
	}
}

// errCrashed is why an export failed whose runs had no end.
var errCrashed = errors.New("export: it was begun again and again and has not come to its next part")

// fail ends the export. Its job becomes a dead letter.
func (e *Exports) fail(ticket string, cause error) error {
	e.cfg.Logger.Error("an export has failed", "export", ticket[:8], "error", discreet.Text(cause.Error()))
	reason := reasonOf(cause)
	switch err := e.disk.finish(ticket, ending{State: Failed, Reason: reason}); {
	case errors.Is(err, errTaken), errors.Is(err, ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	return jobqueue.Dead(reason)
}

// reasonOf says to the client why an export failed: nothing of patients, and no paths.
func reasonOf(err error) string {
	switch {
	case errors.Is(err, ErrDamaged):
		return Damaged
	case errors.Is(err, ErrDisk):
		return "the files could not be written: the disk of the service is full, or broken; have it looked at, and start a new export"
	case errors.Is(err, patientapi.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		return "the patient store has not answered for long; start a new export when it does"
	case errors.Is(err, errCrashed):
		return "it was begun again and again and came to no end; the log of the service says more"
	}
	return "something went wrong here, again and again; the log of the service says what"
}

// Damaged is what a client is told of an export that is ErrDamaged.
const Damaged = "the files of the export are damaged; delete it and start a new one"
