package app

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/spillway-go/spillway/examples/patientapi/export"
	"github.com/spillway-go/spillway/examples/patientapi/fhir"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/metricsprom"
)

// ExportFlags say whether everybody can be exported by jobs, and where those are.
type ExportFlags struct {
	Dir   string        `name:"exports" help:"Folder of bulk exports (FHIR $export), made on first use; without it there are none. Replicas behind one address share it and --export-queue." env:"SPILLWAY_EXPORTS" placeholder:"FOLDER"`
	Queue string        `name:"export-queue" help:"Where their jobs are: embedded (NATS JetStream in this process, in the folder queue below --exports, for this process alone) or servers of yours, as nats://host:4222. Only the environment may hold a password or token." default:"embedded" env:"SPILLWAY_EXPORT_QUEUE"`
	Keep  time.Duration `name:"export-keep" help:"How long an export is kept once nothing happens with it: it is finished, or stuck." default:"24h" env:"SPILLWAY_EXPORT_KEEP"`
}

const embeddedQueue = "embedded"

// engineTimeout bounds the wait for an engine that answers and is slow: the disk of one in
// this process may be busy with others. One that does not answer is given up sooner.
const engineTimeout = 30 * time.Second

// Engine opens queues for Command. A program that wants exports links one; package app
// does not.
type Engine interface {
	// Open opens the queue of that name at url or, if that is empty, in this process, in
	// the folder dir, which close ends. It tries jobs as p says.
	Open(ctx context.Context, name, url, dir string, p jobqueue.Policy, logger *slog.Logger) (q jobqueue.Queue, close func() error, err error)
}

// check finds what can be found wrong before anything is touched.
func (c *Command) checkExports() error {
	f := c.Exports
	switch {
	case f.Keep < time.Second:
		return usagef("export-keep is %v: want 1s or more", f.Keep)
	case f.Queue != embeddedQueue && !strings.HasPrefix(f.Queue, "nats://") && !strings.HasPrefix(f.Queue, "tls://"):
		return usagef("export-queue: want embedded, or servers as nats://host:4222, separated by commas") // not repeated: it may hold a password
	case f.Dir == "" && f.Queue != embeddedQueue:
		return usagef("export-queue without exports: --exports names the folder of their files")
	case f.Dir != "" && c.Engine == nil:
		return usagef("exports: this program has no queue for them; patientapi and spillway serve have one")
	}
	return nil
}

// exporting is the exports of one run.
type exporting struct {
	exports *export.Exports
	queue   jobqueue.Queue
	end     func() error
	stop    context.CancelFunc
	ended   chan error
}

// openExports opens the exports and goes on with those that are not finished; nothing
// without a folder.
func (s *service) openExports(ctx context.Context, _ io.Writer) error {
	f := s.cmd.Exports
	if f.Dir == "" {
		return nil
	}
	url := f.Queue
	if url == embeddedQueue {
		url = ""
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), engineTimeout)
	defer cancel()
	x := &exporting{ended: make(chan error, 1)}
	var err error
	if x.queue, x.end, err = s.cmd.Engine.Open(ctx, "exports", url, filepath.Join(f.Dir, "queue"), export.Policy(), s.logger); err != nil {
		return usagef("exports: %w", err)
	}
	s.onClose(func() { x.close(s.logger) })
	x.exports, err = export.New(export.Config{
		Queue: x.queue, Store: s.questions, Runner: s.runner, Resources: fhir.Resources, Dir: f.Dir, Keep: f.Keep, Timeout: s.cmd.Deadline.Timeout, Logger: s.logger,
	})
	if err != nil {
		return usage(err)
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	x.stop = stop
	go func() { x.ended <- x.exports.Run(run) }()
	s.exporting = x
	return nil
}

// bulk are the exports; nil if there are none.
func (x *exporting) bulk() *export.Exports {
	if x == nil {
		return nil
	}
	return x.exports
}

// metrics are those of the queue; its name is that of the exports.
func (x *exporting) metrics() []prometheus.Collector {
	if x == nil {
		return nil
	}
	return []prometheus.Collector{metricsprom.New(jobqueue.Metrics("exports", x.queue))}
}

// drain takes no more exports, and ends the work on those that are not finished: another
// process goes on with them.
func (x *exporting) drain(ctx context.Context) error {
	if x == nil {
		return nil
	}
	x.stop()
	return x.queue.Drain(ctx)
}

// close ends what drain has not.
func (x *exporting) close(logger *slog.Logger) {
	var err error
	if x.stop != nil {
		x.stop()
		if err = <-x.ended; errors.Is(err, context.Canceled) {
			err = nil
		}
	}
	if err = errors.Join(err, x.queue.Close(), x.end()); err != nil {
		logger.Error("the queue of exports did not end well", "error", err)
	}
}
