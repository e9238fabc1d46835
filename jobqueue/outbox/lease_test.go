package outbox

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/memory"
)

func TestTwoRelaysDoNotSendTheSameRows(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s site) {
		q := &recorder{Queue: inMemory(t, memory.Config{})}
		a, b := open(t, s, q, Config{Parallel: 4}), open(t, s, q, Config{Parallel: 4})
		begin(t, a)
		begin(t, b)
		const jobs = 300
		for i := range jobs {
			commit(t, a, jobqueue.Job{Key: fmt.Sprint(i)})
		}
		empty(t, a)
		x, y := stats(t, a), stats(t, b)
		if keys := q.keys(); len(keys) != jobs || x.Stored+y.Stored != jobs || x.Duplicates+y.Duplicates != 0 {
			t.Errorf("%d sent, %+v, %+v", len(keys), x, y)
		}
	})
}

// A relay that stalls for longer than its lease sends duplicates and deletes rows by number. The
// number of a removed row must not be another row's.
func TestARelayThatStallsDeletesNoOtherRow(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s site) {
		held, free := make(chan struct{}), make(chan struct{})
		engine := inMemory(t, memory.Config{})
		slow := &recorder{Queue: engine, after: func(job jobqueue.Job) {
			if job.Key == "1" {
				close(held)
				<-free
			}
		}}
		quick := &recorder{Queue: engine}
		a, b := open(t, s, slow, Config{}), open(t, s, quick, Config{})
		a.lease, b.lease = 50*time.Millisecond, 50*time.Millisecond
		commit(t, a, jobqueue.Job{Key: "1"}, jobqueue.Job{Key: "2"})
		begin(t, a)
		await.Receive(t, "the first relay stalls", held)
		stop := begin(t, b)
		empty(t, b) // the lease of the first is over
		if err := stop(); err != context.Canceled {
			t.Error(err)
		}
		commit(t, a, jobqueue.Job{Key: "3"}, jobqueue.Job{Key: "4"}) // with the numbers 1 and 2, if numbers came again
		close(free)
		empty(t, a)
		if got := slow.keys(); !slices.Equal(got, []string{"1", "3", "4"}) {
			t.Errorf("%q", got)
		}
		if n := stats(t, b); n.Duplicates != 1 || n.Stored != 1 {
			t.Errorf("%+v", n)
		}
	})
}

func TestTheLeaseIsOfOneAtATime(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s site) {
		b := open(t, s, nil, Config{})
		acquire := func(holder string) bool {
			t.Helper()
			ours, err := b.acquire(t.Context(), holder)
			noError(t, err)
			return ours
		}
		if !acquire("a") || acquire("b") || !acquire("a") {
			t.Error("the lease is not the first holder's alone")
		}
		b.release(t.Context(), "b")
		if acquire("b") {
			t.Error("somebody else gave the lease back")
		}
		b.release(t.Context(), "a")
		if !acquire("b") || acquire("a") {
			t.Error("the lease was not given back")
		}
		// Of a clock that was set back an hour after the lease was taken.
		if _, err := b.db.ExecContext(t.Context(), "UPDATE spillway_outbox_lease SET until = until + 3600"); err != nil {
			t.Fatal(err)
		}
		if !acquire("a") {
			t.Error("a lease that ends in an hour")
		}
		if _, err := b.db.ExecContext(t.Context(), "DELETE FROM spillway_outbox_lease"); err != nil {
			t.Fatal(err)
		}
		if !acquire("b") {
			t.Error("a lease whose row was deleted")
		}
	})
}
