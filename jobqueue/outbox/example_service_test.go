package outbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/embedded"
	"github.com/spillway-go/spillway/jobqueue/jetstream"
	"github.com/spillway-go/spillway/jobqueue/outbox"
)

// A process with its engine inside: the database, the engine, the queue, the outbox and the workers
// start and stop in an order that loses nothing.
func Example_service() {
	dir, err := os.MkdirTemp("", "orders")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ctx, stop := context.WithCancel(context.Background()) // a service: signal.NotifyContext
	defer stop()
	fmt.Println(serve(ctx, dir, func(order string) {
		fmt.Println("confirmed:", order)
		stop()
	}))
	// Output:
	// confirmed: 17
	// <nil>
}

// serve works until ctx ends. The deferred calls stop the parts in the reverse order of their start.
func serve(ctx context.Context, dir string, confirm func(order string)) error {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "orders.db")+
		"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_txlock=immediate")
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // for what writes: handlers and Relay take turns in order
	schema, err := outbox.Schema(outbox.SQLite, "")
	if err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, schema+"CREATE TABLE IF NOT EXISTS orders (id text PRIMARY KEY)"); err != nil {
		return err
	}

	server, err := embedded.Start(embedded.Config{Dir: filepath.Join(dir, "jobs")})
	if err != nil {
		return err
	}
	defer server.Close(context.WithoutCancel(ctx))
	queue, err := jetstream.Open(ctx, jetstream.Config{Server: server, Name: "orders"})
	if err != nil {
		return err
	}
	defer queue.Close()

	box, err := outbox.New(db, outbox.SQLite, queue, outbox.Config{Parallel: 100})
	if err != nil {
		return err
	}

	// What feeds the queue ends before the queue drains. Work gets a context that does not end: Drain
	// ends Work, and lets the running handlers finish.
	feed, stopFeed := context.WithCancel(context.WithoutCancel(ctx))
	var feeders sync.WaitGroup
	defer feeders.Wait()
	defer stopFeed()
	ended := make(chan error, 2)
	feeders.Go(func() { ended <- box.Relay(feed) })
	// Run of a periodic.Scheduler belongs here too: feeders.Go(func() { ended <- scheduler.Run(feed) })
	go func() {
		ended <- queue.Work(context.WithoutCancel(ctx), func(_ context.Context, d *jobqueue.Delivery) error {
			switch kind := d.Header["kind"]; kind {
			case "confirm":
				confirm(string(d.Payload))
				return nil
			default: // of the next version, in a rolling update
				return jobqueue.NotHere(fmt.Errorf("no handler for jobs of kind %q", kind))
			}
		})
	}()

	if err := placeOrder(ctx, db, box, "17"); err != nil { // a service: http.Server, behind a limiter
		return err
	}
	var cause error
	select {
	case <-ctx.Done():
	case cause = <-ended: // such as ErrUnavailable of Work: end the process
	}
	stopFeed()
	feeders.Wait()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	return errors.Join(cause, queue.Drain(stopping))
}

func placeOrder(ctx context.Context, db *sql.DB, box *outbox.Box, id string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, "INSERT INTO orders VALUES (?)", id); err != nil {
		return err
	}
	job := jobqueue.Job{Key: "confirm " + id, Header: map[string]string{"kind": "confirm"}, Payload: []byte(id)}
	if err := box.Enqueue(ctx, tx, job); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	box.Wake()
	return nil
}
