package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/embedded"
	"github.com/spillway-go/spillway/jobqueue/jetstream"
)

// natsEngine is the app.Engine of this program.
type natsEngine struct{}

const (
	mostJobs  = 100      // that wait or run
	mostBytes = 16 << 20 // of those: a job is a name
	atOnce    = 2        // jobs, in all processes
	// lostAfter is how soon another process goes on with a job whose process was killed. A
	// job says that it is alive every two seconds.
	lostAfter  = 6 * time.Second
	engineDisk = 64 << 20
	endTimeout = 10 * time.Second
)

// Open opens a queue in NATS JetStream.
func (natsEngine) Open(ctx context.Context, name, url, dir string, p jobqueue.Policy, logger *slog.Logger) (jobqueue.Queue, func() error, error) {
	cfg := jetstream.Config{URL: url, Name: name, MaxQueued: mostJobs, MaxBytes: mostBytes, MaxInFlight: atOnce, AckWait: lostAfter, Policy: p, Logger: logger}
	end := func() error { return nil }
	if url == "" {
		server, err := embedded.Start(embedded.Config{Dir: dir, MaxBytes: engineDisk, Logger: logger})
		if err != nil {
			return nil, nil, err
		}
		end = func() error {
			ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
			defer cancel()
			return server.Close(ctx)
		}
		cfg.Server = server
	}
	q, err := jetstream.Open(ctx, cfg)
	if err != nil {
		return nil, nil, errors.Join(err, end())
	}
	return q, end, nil
}
