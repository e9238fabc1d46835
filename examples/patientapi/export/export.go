// Package export makes bulk exports, each as a durable job: the resources of all patients
// as files of NDJSON, a part of the patients at a time. What has begun is finished, also
// when the process is killed in between.
//
// The states of an export, and what is on disk in each:
//
//	            Start                 a part                     the last part
//	(nothing) ────────▶ ACCEPTED ────────────▶ RUNNING ───────────────────────▶ COMPLETE
//	                    request.json           part-000001/ …                   end/
//	                       │                    │   ▲ │                            │
//	                       │                    │   └─┘ a part, a stop, a crash,   │
//	                       │                    │       a retry, a rejection       │
//	                       │                    │                                  │
//	                       │    too many runs without a part, or damaged files     │
//	                       ├──────────────────▶ FAILED ◀──┘ end/, without parts    │
//	                       │                      │                                │
//	                       └──── Cancel ──────────┴──────── Cancel, Keep is over ──┤
//	                                                                               ▼
//	                                             CANCELLED, EXPIRED: there is no folder
//
// Every arrow is one rename of a folder that has been written and fsynced before: it
// happens whole or not at all, and once, whoever else tries. So two workers that have the
// same job, which a queue that delivers at least once may do, are no harm.
package export

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/access"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/jobqueue"
)

var (
	// ErrNotFound says that there is no such export, or not any more, or no such file.
	ErrNotFound = errors.New("export: there is no such export")
	// ErrDamaged says that what is on disk of an export is not what was written.
	ErrDamaged = errors.New("export: the files of the export are damaged")
	// ErrDisk says that a file, or the job, could not be written: the disk is full, or broken.
	ErrDisk = errors.New("export: the disk takes nothing")
)

// Types are what can be exported, in the order of a manifest.
var Types = []access.Resource{access.Patients, access.Observations, access.MedicationRequests}

// Config says where exports come from and where they are. Queue, Store, Runner, Resources
// and Dir are needed.
type Config struct {
	Queue  jobqueue.Queue // give it Policy
	Store  patientapi.Store
	Runner *patterns.Runner

	// Resources returns those of one type that a patient has; observations are the
	// patient's. They are used before the next one is asked for.
	Resources func(t access.Resource, p *patientapi.Patient, observations []patientapi.Observation) iter.Seq[any]

	Dir      string        // of the files; replicas that share a Queue share it
	Keep     time.Duration // how long an export is kept once nothing happens with it; 0 means 24 h
	PartSize int           // most patients whose data is written at once; 0 means 1000
	Most     int           // exports in Dir, finished ones too; 0 means 100
	Timeout  time.Duration // of a question to the store; 0 means none
	Logger   *slog.Logger  // nil means that nothing is logged
}

// Policy is how often a queue must try the jobs of exports. It is they who give up: see
// fruitless.
func Policy() jobqueue.Policy {
	return jobqueue.Policy{MaxAttempts: 1_000_000, Backoff: time.Second, MaxBackoff: time.Minute}
}

// Exports are those of one service.
type Exports struct {
	cfg  Config
	disk disk
}

// New returns the exports in cfg.Dir, which it makes. Nothing is done before Run.
func New(cfg Config) (*Exports, error) {
	for _, n := range []struct {
		name  string
		value int64
	}{{"Keep", int64(cfg.Keep)}, {"PartSize", int64(cfg.PartSize)}, {"Most", int64(cfg.Most)}, {"Timeout", int64(cfg.Timeout)}} {
		if n.value < 0 {
			return nil, fmt.Errorf("export: %s is negative: 0 means the default", n.name)
		}
	}
	cfg.Keep, cfg.PartSize, cfg.Most = cmp.Or(cfg.Keep, 24*time.Hour), cmp.Or(cfg.PartSize, 1000), cmp.Or(cfg.Most, 100)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	d, err := openDisk(cfg.Dir)
	return &Exports{cfg, d}, err
}

// Request is what an export is of.
type Request struct {
	Types []access.Resource `json:"types"`
	// Withheld are types that were left out because the caller may not have them.
	Withheld []access.Resource `json:"withheld,omitempty"`
	Since    time.Time         `json:"since,omitzero"` // what has changed from then on; zero: everything
	URL      string            `json:"url"`            // of the request, without its base
	Started  time.Time         `json:"started"`        // everything that has changed before is in it
}

// Start begins the export with that ticket and returns when it is on disk and its job in
// the queue. A full queue, or a folder of as many exports as there may be, is a
// *spillway.Rejection. The error may match ErrDisk, also for the disk of the queue, or
// jobqueue.ErrUnavailable.
func (e *Exports) Start(ctx context.Context, ticket string, r Request) error {
	there, err := e.disk.tickets()
	if err != nil {
		return errors.Join(ErrDisk, err)
	}
	if len(there) >= e.cfg.Most {
		return &spillway.Rejection{Reason: spillway.ReasonQueueFull, Cause: "exports that are kept", RetryAfter: time.Minute}
	}
	if err := e.disk.add(ticket, r); err != nil {
		return errors.Join(ErrDisk, err)
	}
	if err := e.enqueue(ctx, ticket, ticket); err != nil {
		if errors.Is(err, jobqueue.ErrDiskFull) {
			// The queue calls that a full queue as well. To come back later is no advice here:
			// somebody has to make room.
			err = fmt.Errorf("%w: %v", ErrDisk, err)
		}
		// If the job is in the queue all the same, it finds nothing to do.
		return errors.Join(err, e.disk.remove(ticket))
	}
	return nil
}

func (e *Exports) enqueue(ctx context.Context, key, ticket string) error {
	_, err := e.cfg.Queue.Enqueue(ctx, jobqueue.Job{Key: key, Priority: spillway.Low, Payload: []byte(ticket)})
	return err
}

// State is where an export is on its way.
type State string

// The states; an export that was cancelled or has expired is not found.
const (
	Accepted State = "accepted"
	Running  State = "running"
	Complete State = "complete"
	Failed   State = "failed"
)

// Status is an export as it is.
type Status struct {
	Request
	State    State
	Patients int       // looked at so far
	Reason   string    // why it failed, for the client
	Changed  time.Time // when it last was
	Expires  time.Time // if nothing happens with it
	Files    []File    // of an export that is complete
}

// File is one of the files.
type File struct {
	Name  string
	Type  access.Resource
	Count int // resources
}

// Status returns how far the export is. The error matches ErrNotFound or ErrDamaged, or
// says that the disk cannot be read.
func (e *Exports) Status(ticket string) (Status, error) {
	x, err := e.disk.load(ticket)
	if err != nil {
		return Status{}, err
	}
	s := Status{Request: x.request, State: x.state(), Patients: x.last().Total, Changed: x.changed()}
	s.Expires = s.Changed.Add(e.cfg.Keep)
	switch s.State {
	case Failed:
		s.Reason = x.end.Reason
	case Complete:
		for _, t := range Types {
			for i, p := range x.parts {
				if at := slices.IndexFunc(p.Files, func(f lines) bool { return f.Type == t }); at >= 0 {
					s.Files = append(s.Files, File{fileName(t, i+1), t, p.Files[at].Count})
				}
			}
		}
	}
	return s, nil
}

// Cancel ends an export that runs and deletes the files of one that does not. Its job
// notices at its next part, or within seconds.
func (e *Exports) Cancel(ticket string) error { return e.disk.remove(ticket) }
