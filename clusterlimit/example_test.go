package clusterlimit_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/clusterlimit"
	"github.com/spillway-go/spillway/limiter"
)

// Two replicas of a service share 100 slots. In production each replica is its own process.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	url, stop := startEngine()
	defer stop()

	lim, err := limiter.New(limiter.Config{Name: "orders"})
	if err != nil {
		panic(err)
	}
	member, err := clusterlimit.Join(ctx, clusterlimit.Config{URL: url, Name: "orders", Concurrency: 100})
	if err != nil {
		panic(err)
	}
	defer member.Close(context.Background())
	if err := member.Bind(lim); err != nil {
		panic(err)
	}
	fmt.Println("alone:", member.Stats().Slots)

	other, err := clusterlimit.Join(ctx, clusterlimit.Config{URL: url, Name: "orders"})
	if err != nil {
		panic(err)
	}
	for range renewals(ctx, url, "orders") {
		if other.Stats().Slots == 50 { // the first has given up its half
			break
		}
	}
	fmt.Println("with another:", member.Stats().Slots)
	err = lim.Do(ctx, func(context.Context) error { return nil })
	fmt.Println("work:", err)
	// Output:
	// alone: 100
	// with another: 50
	// work: <nil>
}

// A rate that all replicas share. An admission sends nothing.
func ExampleMember_Allow() {
	url, stop := startEngine()
	defer stop()
	member, err := clusterlimit.Join(context.Background(), clusterlimit.Config{URL: url, Name: "mails", Rate: 1, Lease: time.Hour})
	if err != nil {
		panic(err)
	}
	defer member.Close(context.Background())
	for err == nil {
		err = member.Allow(1)
	}
	if rej, ok := errors.AsType[*spillway.Rejection](err); ok {
		fmt.Println(rej.Reason, "of", rej.Cause, "with advice:", rej.RetryAfter > 0)
	}
	// Output: budget of lease of mails with advice: true
}

// renewals reports each renewal of a lease in a budget.
func renewals(ctx context.Context, url, budget string) <-chan jetstream.KeyValueEntry {
	conn, err := nats.Connect(url, nats.Timeout(time.Minute))
	if err != nil {
		panic(err)
	}
	context.AfterFunc(ctx, conn.Close)
	client, err := jetstream.New(conn)
	if err != nil {
		panic(err)
	}
	bucket, err := client.KeyValue(ctx, "spillway")
	if err != nil {
		panic(err)
	}
	watcher, err := bucket.Watch(ctx, "budget."+budget)
	if err != nil {
		panic(err)
	}
	return watcher.Updates()
}

// startEngine starts a server like "nats-server -js".
func startEngine() (url string, stop func()) {
	folder, err := os.MkdirTemp("", "engine")
	if err != nil {
		panic(err)
	}
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: folder, NoLog: true, NoSigs: true})
	if err != nil {
		panic(err)
	}
	s.Start()
	s.ReadyForConnections(time.Minute)
	return s.ClientURL(), func() {
		s.Shutdown()
		s.WaitForShutdown()
		os.RemoveAll(folder)
	}
}
