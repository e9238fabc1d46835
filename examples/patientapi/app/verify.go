package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/audit"
	auditpostgres "github.com/spillway-go/spillway/examples/patientapi/audit/postgres"
	auditsqlite "github.com/spillway-go/spillway/examples/patientapi/audit/sqlite"
)

// AuditCommand is what can be done with records, for kong.
type AuditCommand struct {
	Verify VerifyCommand `cmd:"" help:"Read all records of accesses, and say which were altered, removed, inserted or moved."`
}

// VerifyCommand reads a chain of records, for kong.
type VerifyCommand struct {
	DB       string `name:"db" help:"SQLite file of the records; that of the service unless given." env:"SPILLWAY_AUDIT_DB" placeholder:"FILE"`
	Store    string `name:"store" help:"PostgreSQL with the records, as postgres://user@host:5432/database. Only the environment may hold a password." env:"SPILLWAY_STORE" placeholder:"URL"`
	Password string `name:"store-password-file" help:"File with the password of the PostgreSQL; PGPASSWORD and ~/.pgpass work as well." env:"SPILLWAY_STORE_PASSWORD_FILE" placeholder:"FILE"`
	KeyFile  string `name:"key-file" help:"File with the key that the records were made with." env:"SPILLWAY_AUDIT_KEY_FILE" placeholder:"FILE"`
	Head     string `name:"head" help:"File with the head of the chain as it was the last time, kept where the records are not: a chain that lacks it was cut or rewritten. The head is written there if the chain is whole." placeholder:"FILE"`
	JSON     bool   `name:"json" help:"Print the result as JSON." env:"SPILLWAY_JSON"`
}

// Help is for kong, which shows it between the usage and the flags.
func (VerifyCommand) Help() string {
	return `A service may be writing meanwhile. Without --head, it cannot be seen that the storage was put back to an earlier copy of itself. Records that were made with a key (--audit-key-file of the service) need it here as --key-file: without it their numbers and order are compared, and not what they say. Of records that were made without one it cannot be seen that the whole chain was made anew.

Examples:
  patientapi audit verify
  patientapi audit verify --head /elsewhere/head --key-file /run/secrets/audit-key

"spillway audit" is the same as "patientapi audit".

Exit codes: 0 the chain is whole; 1 it is not, or it could not be read to its end, or only its head in --head is left; 2 bad input; 3 the records need a key that was not given: their numbers and order fit, and what they say was not verified.`
}

// ErrKeyNeeded is the answer of a verification without the key that the records were made
// with: a program that gets it exits with 3.
var ErrKeyNeeded = errors.New("not verified: the records were made with a key; give it with --key-file")

// errNotWhole is the answer of a verification that has found something.
var errNotWhole = errors.New("the chain of records is not whole")

// verified is a result as JSON.
type verified struct {
	Whole   bool          `json:"whole"`
	Keyed   bool          `json:"key_needed"` // and not given: what records say was not verified
	Records int64         `json:"records"`
	Lost    int64         `json:"lost"`
	Unclean int64         `json:"unclean"` // processes that were killed
	First   time.Time     `json:"first"`
	Last    time.Time     `json:"last"`
	Head    string        `json:"head"`
	Known   string        `json:"known"` // the head that the chain was compared with; empty: none
	Found   int64         `json:"found"`
	Faults  []audit.Fault `json:"faults"`
}

// Run prints what it finds on stdout, and progress on stderr.
func (c *VerifyCommand) Run(ctx context.Context, stdout, stderr io.Writer) error {
	key, err := auditKey("key-file", c.KeyFile)
	if err != nil {
		return err
	}
	known, err := c.known()
	if err != nil {
		return err
	}
	storage, err := c.open(ctx)
	if err != nil && known.Sequence > 0 && (errors.Is(err, audit.ErrNoRecords) || errors.Is(err, fs.ErrNotExist)) {
		// There were records, and a head of them was kept.
		r := audit.Result{Found: 1, Faults: []audit.Fault{{Sequence: 1, What: fmt.Sprintf(
			"the records from here to %d, where the kept head is, were destroyed, or are elsewhere: %v", known.Sequence, err)}}}
		if err := c.tell(stdout, r, known); err != nil {
			return err
		}
		return fmt.Errorf("%w: %w", errNotWhole, err)
	}
	if err != nil {
		return usage(err)
	}
	defer storage.Close()
	said := time.Now()
	r, err := audit.Verify(ctx, storage, key, known, func(records int64) {
		if now := time.Now(); now.Sub(said) > time.Second {
			said = now
			fmt.Fprintf(stderr, "%d records so far\n", records)
		}
	})
	if err != nil && ctx.Err() == nil {
		r.Found++
		r.Faults = append(r.Faults, audit.Fault{Sequence: r.Records + 1, What: fmt.Sprintf("the records from here on cannot be read: %v", err)})
	} else if err != nil {
		return err
	}
	if err := errors.Join(err, c.tell(stdout, r, known)); err != nil {
		return err
	}
	if r.Found > 0 {
		return fmt.Errorf("%w: %d faults", errNotWhole, r.Found)
	}
	if r.Keyed {
		return ErrKeyNeeded
	}
	return c.keep(r.Head)
}

func (c *VerifyCommand) open(ctx context.Context) (audit.Storage, error) {
	if c.DB == "" && c.Store != "" {
		service := Command{Store: StoreFlags{Kind: c.Store, PasswordFile: c.Password}}
		// A mistyped address must not end with the records of something else.
		if err := errors.Join(service.hidesPassword(os.Args), service.checkStore()); err != nil {
			return nil, err
		}
		if service.Store.kind() == postgresStore {
			database, err := service.database()
			if err != nil {
				return nil, err
			}
			return auditpostgres.OpenExisting(ctx, database.URL, database.Password)
		}
	}
	path, err := auditFile(c.DB)
	if err != nil {
		return nil, err
	}
	return auditsqlite.OpenExisting(ctx, path)
}

// known is the head that was kept; the zero Head if there is none yet.
func (c *VerifyCommand) known() (audit.Head, error) {
	if c.Head == "" {
		return audit.Head{}, nil
	}
	if _, err := os.Stat(filepath.Dir(c.Head)); err != nil { // now, and not behind an hour of verifying
		return audit.Head{}, usagef("head: %w", err)
	}
	text, err := os.ReadFile(c.Head)
	if errors.Is(err, fs.ErrNotExist) {
		return audit.Head{}, nil
	}
	if err != nil {
		return audit.Head{}, usagef("head: %w", err)
	}
	known, err := audit.ParseHead(string(text))
	if err != nil {
		return audit.Head{}, usagef("head: %s: %w", c.Head, err)
	}
	return known, nil
}

// keep replaces the head that was kept, whole or not at all.
func (c *VerifyCommand) keep(head audit.Head) error {
	if c.Head == "" {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(c.Head), ".head-")
	if err != nil {
		return usagef("the head cannot be kept: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = fmt.Fprintln(f, head)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), c.Head)
	}
	return err
}

func (c *VerifyCommand) tell(stdout io.Writer, r audit.Result, known audit.Head) error {
	none := known == audit.Head{}
	if c.JSON {
		was := ""
		if !none {
			was = known.String()
		}
		return json.NewEncoder(stdout).Encode(verified{
			r.Found == 0 && !r.Keyed, r.Keyed, r.Records, r.Lost, r.Unclean, r.First, r.Last, r.Head.String(), was, r.Found, append([]audit.Fault{}, r.Faults...),
		})
	}
	fmt.Fprintf(stdout, "%d records", r.Records)
	if r.Records > 0 {
		fmt.Fprintf(stdout, ", from %s to %s", r.First.Format(time.RFC3339), r.Last.Format(time.RFC3339))
	}
	fmt.Fprintln(stdout)
	if r.Lost > 0 {
		fmt.Fprintf(stdout, "%d accesses are not on record, and the records say so\n", r.Lost)
	}
	if r.Unclean > 0 {
		fmt.Fprintf(stdout, "%d processes were killed or lost their storage: accesses of their last moments may be missing; the records with the outcome unclean say when that was found\n", r.Unclean)
	}
	for _, f := range r.Faults {
		fmt.Fprintf(stdout, "record %d: %s\n", f.Sequence, f.What)
	}
	if more := r.Found - int64(len(r.Faults)); more > 0 {
		fmt.Fprintf(stdout, "and %d faults more\n", more)
	}
	switch {
	case r.Keyed:
		fmt.Fprintln(stdout, "the records were made with a key: their numbers and order were compared, and not what they say")
	case r.Found == 0:
		switch {
		case c.Head == "":
		case none:
			fmt.Fprintf(stdout, "there was no head in %s to compare the chain with; this one is kept there\n", c.Head)
		default:
			fmt.Fprintf(stdout, "the head in %s, that of record %d, is in the chain; this one takes its place\n", c.Head, known.Sequence)
		}
		fmt.Fprintf(stdout, "the chain is whole; its head is\n%s\n", r.Head)
	}
	return nil
}
