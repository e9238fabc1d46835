package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/embedded"
	"github.com/spillway-go/spillway/jobqueue/internal/local"
	"github.com/spillway-go/spillway/jobqueue/jetstream"
)

// place holds the flags that select the queue.
type place struct {
	URL   string        `name:"url" env:"SPILLWAY_QUEUE_URL" placeholder:"URL" help:"NATS servers, separated by commas: nats://host:4222. Put a password into the variable, not into the flag."`
	Dir   string        `env:"SPILLWAY_QUEUE_DIR" placeholder:"FOLDER" help:"The folder of an embedded server that no process uses."`
	Creds string        `env:"SPILLWAY_QUEUE_CREDS" placeholder:"FILE" help:"A NATS credentials file for --url."`
	Name  string        `env:"SPILLWAY_QUEUE_NAME" default:"jobs" help:"The queue's name."`
	Wait  time.Duration `env:"SPILLWAY_QUEUE_WAIT" default:"5s" help:"How long to wait for an engine that does not answer."`
	JSON  bool          `name:"json" env:"SPILLWAY_QUEUE_JSON" help:"Write JSON."`
}

// check returns what is wrong with the flags.
func (p *place) check() error {
	switch {
	case p.URL == "" && p.Dir == "":
		return badInput("name the queue's engine with --url or --dir; see spillway queue --help")
	case p.URL != "" && p.Dir != "":
		return badInput("use --url or --dir, not both")
	case p.Creds != "" && p.URL == "":
		return badInput("--creds is for --url")
	case p.Wait <= 0:
		return badInput("--wait is %s: it must be above zero", p.Wait)
	}
	for server := range strings.SplitSeq(p.URL, ",") {
		u, err := url.Parse(strings.TrimSpace(server))
		if p.URL != "" && (err != nil || u.Host == "") {
			return badInput("--url: write nats://host:port, several of them separated by commas")
		}
	}
	if p.Dir != "" {
		if info, err := os.Stat(p.Dir); errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
			return badInput("--dir: there is no folder %s", p.Dir)
		}
	}
	return nil
}

// opened is a queue, and the time at which the oldest job that has not ended was enqueued. Zero:
// there is no such job.
type opened struct {
	jobqueue.Queue
	oldest time.Time
}

// use opens an existing queue for f. It creates no queue, so a misspelled name is an error.
func (p *place) use(ctx context.Context, f func(opened) error) (err error) {
	if err := p.check(); err != nil {
		return err
	}
	cfg := jetstream.Config{URL: p.URL, Name: p.Name, Wait: p.Wait}
	if p.Creds != "" {
		cfg.Options = append(cfg.Options, nats.UserCredentials(p.Creds))
	}
	options := cfg.Options
	if p.Dir != "" {
		server, err := embedded.Start(embedded.Config{Dir: p.Dir})
		if err != nil {
			return fmt.Errorf("%s: %w", p.Dir, err)
		}
		defer func() { err = errors.Join(err, server.Close(context.WithoutCancel(ctx))) }()
		cfg.Server = server
		options = append(options, nats.InProcessServer(server.Engine()))
	}
	oldest, err := p.oldest(ctx, options)
	if err != nil {
		return err
	}
	q, err := jetstream.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	return f(opened{q, oldest})
}

// oldest returns the time for opened. It does not open the queue, because Open would create a
// missing queue. A missing queue is an error.
func (p *place) oldest(ctx context.Context, options []nats.Option) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, p.Wait)
	defer cancel()
	nc, err := nats.Connect(p.URL, append(options, nats.Timeout(p.Wait))...)
	if err != nil {
		return time.Time{}, fmt.Errorf("connecting: %w; is --url right, and is the server up? For a queue in a folder give --dir", err)
	}
	defer nc.Close()
	client, err := js.New(nc)
	if err != nil {
		return time.Time{}, err
	}
	stream, err := client.Stream(ctx, local.StreamName(p.Name))
	switch {
	case errors.Is(err, js.ErrStreamNotFound):
		return time.Time{}, badInput("there is no queue %q; --name says which", p.Name)
	case errors.Is(err, js.ErrInvalidStreamName):
		return time.Time{}, badInput("--name: %q cannot be the name of a queue", p.Name)
	case err != nil:
		return time.Time{}, err
	}
	if state := stream.CachedInfo().State; state.Msgs > 0 {
		return state.FirstTime, nil
	}
	return time.Time{}, nil
}
