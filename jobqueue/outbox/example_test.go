package outbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	_ "modernc.org/sqlite"

	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/memory"
	"github.com/spillway-go/spillway/jobqueue/outbox"
)

// An order and the job that sends its mail are stored together, or not at all.
func Example() {
	dir, err := os.MkdirTemp("", "orders")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "orders.db")+"?_pragma=busy_timeout(10000)&_txlock=immediate")
	if err != nil {
		panic(err)
	}
	defer db.Close()
	ctx, stop := context.WithCancel(context.Background())
	schema, err := outbox.Schema(outbox.SQLite, "") // belongs into a migration
	if err != nil {
		panic(err)
	}
	if _, err := db.ExecContext(ctx, schema+"CREATE TABLE orders (id text PRIMARY KEY)"); err != nil {
		panic(err)
	}

	queue, err := memory.Open(memory.Config{}) // a service uses package jetstream
	if err != nil {
		panic(err)
	}
	defer queue.Close()
	box, err := outbox.New(db, outbox.SQLite, queue, outbox.Config{})
	if err != nil {
		panic(err)
	}
	relayed := make(chan error)
	go func() { relayed <- box.Relay(ctx) }()

	order := func(id string) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := box.Enqueue(ctx, tx, jobqueue.Job{Key: "mail " + id}); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO orders VALUES (?)", id); err != nil {
			return err // and no job
		}
		if err := tx.Commit(); err != nil {
			return err
		}
		box.Wake()
		return nil
	}
	fmt.Println("ordered:", order("17"))
	fmt.Println("twice:", order("17") != nil)
	fmt.Println("ordered:", order("18"))

	var done atomic.Int64
	err = queue.Work(ctx, func(_ context.Context, d *jobqueue.Delivery) error {
		fmt.Println("sent:", d.Key)
		if done.Add(1) == 2 {
			stop() // an application would keep working
		}
		return nil
	})
	fmt.Println(err, <-relayed)
	// Unordered output:
	// ordered: <nil>
	// twice: true
	// ordered: <nil>
	// sent: mail 17
	// sent: mail 18
	// context canceled context canceled
}
