package main

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/embedded"
	"github.com/spillway-go/spillway/jobqueue/jetstream"
	"github.com/spillway-go/spillway/lab/durable"
)

// engineWait bounds each request to an engine. It is what both libraries wait by default.
var engineWait = 5 * time.Second

// engines start in an empty folder. Their context does not outlive the bout.
var engines = map[string]func(ctx context.Context, folder string) (engine, error){
	durable.GroupCommit: func(ctx context.Context, folder string) (engine, error) {
		return queue(ctx, folder, false)
	},
	durable.Interval: func(ctx context.Context, folder string) (engine, error) {
		return queue(ctx, folder, true)
	},
	durable.Each: each,
}

// queue is ours.
func queue(ctx context.Context, folder string, noSync bool) (engine, error) {
	open := func() (*embedded.Server, jobqueue.Queue, error) {
		server, err := embedded.Start(embedded.Config{Dir: folder, NoSync: noSync})
		if err != nil {
			return nil, nil, err
		}
		q, err := jetstream.Open(ctx, jetstream.Config{Server: server, Wait: engineWait})
		if err != nil {
			err = errors.Join(err, server.Close(ctx))
		}
		return server, q, err
	}
	server, q, err := open()
	return engine{
		put: func(ctx context.Context, payload []byte) error {
			_, err := q.Enqueue(ctx, jobqueue.Job{Payload: payload})
			return err
		},
		close: func() error { return errors.Join(q.Close(), server.Close(ctx)) },
		count: func() (uint64, error) {
			server, q, err := open()
			if err != nil {
				return 0, err
			}
			stats, err := q.Stats(ctx)
			return uint64(stats.Ready), errors.Join(err, q.Close(), server.Close(ctx))
		},
	}, err
}

// each publishes every message alone, in the usual way of the client library.
func each(ctx context.Context, folder string) (engine, error) {
	open := func() (*embedded.Server, *nats.Conn, js.Stream, js.JetStream, error) {
		server, err := embedded.Start(embedded.Config{Dir: folder})
		if err != nil {
			return nil, nil, nil, nil, err
		}
		nc, err := nats.Connect("", nats.InProcessServer(server.Engine()), nats.Timeout(engineWait))
		if err != nil {
			return server, nil, nil, nil, errors.Join(err, server.Close(ctx))
		}
		client, err := js.New(nc, js.WithDefaultTimeout(engineWait))
		if err != nil {
			return server, nc, nil, nil, err
		}
		stream, err := client.CreateOrUpdateStream(ctx, js.StreamConfig{Name: "jobs", Subjects: []string{"jobs"}, Storage: js.FileStorage})
		return server, nc, stream, client, err
	}
	server, nc, _, client, err := open()
	return engine{
		put: func(ctx context.Context, payload []byte) error {
			_, err := client.Publish(ctx, "jobs", payload)
			return err
		},
		close: func() error { nc.Close(); return server.Close(ctx) },
		count: func() (uint64, error) {
			server, nc, stream, _, err := open()
			if err != nil {
				return 0, err
			}
			nc.Close()
			return stream.CachedInfo().State.Msgs, server.Close(ctx)
		},
	}, err
}
