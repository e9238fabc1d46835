package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/audit"
	auditpostgres "github.com/spillway-go/spillway/examples/patientapi/audit/postgres"
	auditsqlite "github.com/spillway-go/spillway/examples/patientapi/audit/sqlite"
	"github.com/spillway-go/spillway/examples/patientapi/postgres"
)

// AuditFlags say what is put on record, and where.
type AuditFlags struct {
	Mode       string `name:"audit" help:"Whether every access is put on record before it is answered: on or off." default:"on" env:"SPILLWAY_AUDIT"`
	DB         string `name:"audit-db" help:"SQLite file of the records, made on first use. Unless given, they are in the PostgreSQL of --store, or in a file in the user's configuration folder." env:"SPILLWAY_AUDIT_DB" placeholder:"FILE"`
	FailClosed bool   `name:"audit-fail-closed" help:"Answer 503, without data, what cannot be put on record. Otherwise it is answered, and a later record counts what is missing." env:"SPILLWAY_AUDIT_FAIL_CLOSED"`
	KeyFile    string `name:"audit-key-file" help:"File with a key, of 16 bytes or more, that it takes to make the hashes of records." env:"SPILLWAY_AUDIT_KEY_FILE" placeholder:"FILE"`
}

const (
	auditOn     = "on"
	auditOff    = "off"
	shortestKey = 16 // bytes

	openTimeout = 10 * time.Second
)

// check finds what can be found wrong before anything is touched.
func (f AuditFlags) check() error {
	switch {
	case f.Mode != auditOn && f.Mode != auditOff:
		return usagef("audit is %q: want on or off", f.Mode)
	case f.Mode == auditOff && (f.DB != "" || f.FailClosed || f.KeyFile != ""):
		return usagef("audit is off: it takes neither --audit-db nor --audit-fail-closed nor --audit-key-file")
	}
	_, err := auditKey("audit-key-file", f.KeyFile)
	return err
}

// auditKey reads the key in the file that the flag names; none without a file.
func auditKey(flag, file string) (audit.Key, error) {
	if file == "" {
		return nil, nil
	}
	key, err := os.ReadFile(file)
	if err != nil {
		return nil, usagef("%s: %w", flag, err)
	}
	if key = bytes.TrimRight(key, "\r\n"); len(key) < shortestKey {
		return nil, usagef("%s: %s has %d bytes: want %d or more, such as those of head -c 32 /dev/urandom | base64", flag, file, len(key), shortestKey)
	}
	return key, nil
}

// auditing is the audit of one run.
type auditing struct {
	storage   audit.Storage
	writer    *audit.Writer
	strangers *audit.Strangers // in front of the writer
	logger    *slog.Logger
}

// auditBounds are those of commits and records; zero: the writer's own. Tests have more, as
// their disk may be busy.
var auditBounds struct{ timeout, patience time.Duration }

// openAudit opens the storage that the flags ask for; nil if audit is off.
func (c *Command) openAudit(ctx context.Context, patients store, logger *slog.Logger) (*auditing, error) {
	if c.Audit.Mode == auditOff {
		return nil, nil
	}
	key, err := auditKey("audit-key-file", c.Audit.KeyFile)
	if err != nil {
		return nil, err
	}
	// A service that is told to stop meanwhile stops in order, a moment later.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), openTimeout)
	defer cancel()
	storage, err := c.auditStorage(ctx, patients)
	if err != nil {
		return nil, usagef("audit: %w; --audit-db names another file, --audit off does without", err)
	}
	writer, err := audit.NewWriter(ctx, audit.WriterConfig{Storage: storage, Key: key, Timeout: auditBounds.timeout, Patience: auditBounds.patience})
	if err != nil {
		_ = storage.Close()
		if errors.Is(err, audit.ErrHead) {
			err = usagef("%w: give the --audit-key-file that it was made with, or another --audit-db", err)
		}
		return nil, err
	}
	return &auditing{storage, writer, audit.NewStrangers(writer), logger}, nil
}

func (c *Command) auditStorage(ctx context.Context, patients store) (audit.Storage, error) {
	if c.Audit.DB == "" && c.Store.kind() == postgresStore {
		cfg, err := c.database()
		if err != nil {
			return nil, err
		}
		storage, err := auditpostgres.Open(ctx, cfg.URL, cfg.Password)
		if db, ok := patients.(*postgres.Store); ok && err == nil {
			storage.Refused = db.Yield
		}
		return storage, err
	}
	path, err := auditFile(c.Audit.DB)
	if err != nil {
		return nil, err
	}
	if c.sharesFile(path) {
		return nil, fmt.Errorf("%s holds the patients: they can be made again, and whoever removes them would remove the records", path)
	}
	return auditsqlite.Open(ctx, path)
}

// sharesFile reports whether the patients are in the file at path. The store is open.
func (c *Command) sharesFile(path string) bool {
	if c.Store.kind() != sqliteStore {
		return false
	}
	patients, err := c.patientFile()
	if err != nil {
		return false
	}
	a, errA := os.Stat(path)
	b, errB := os.Stat(patients)
	return errA == nil && errB == nil && os.SameFile(a, b)
}

// auditFile is the file of that name, or that of a service without a flag.
func auditFile(name string) (string, error) {
	if name != "" {
		return name, nil
	}
	return auditsqlite.DefaultPath()
}

// log is what takes events; nil if audit is off.
func (a *auditing) log() audit.Log {
	if a == nil {
		return nil
	}
	return a.strangers
}

// trouble returns what says why accesses cannot be put on record; nil if audit is off.
func (a *auditing) trouble() func() error {
	if a == nil {
		return nil
	}
	return a.writer.Trouble
}

// stats are those of the report; nil if audit is off.
func (a *auditing) stats() *audit.Stats {
	if a == nil {
		return nil
	}
	s := a.writer.Stats()
	return &s
}

// close ends the audit, when nothing is served any more.
func (a *auditing) close() {
	if a == nil {
		return
	}
	if err := errors.Join(a.strangers.Close(), a.writer.Close(), a.storage.Close()); err != nil {
		a.logger.Error("the audit did not end well", "error", err)
	}
}
