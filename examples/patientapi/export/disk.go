package export

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/access"
)

// Names below the folder of exports, and below that of one.
const (
	newPrefix  = ".new-"  // an export that is being added
	gonePrefix = ".gone-" // one that is being removed
	unfinished = "tmp-"   // a part or an end that is being written

	requestName = "request.json"
	partName    = "part.json"
	peopleName  = "patients.json"
	endName     = "end"
)

// errTaken says that another worker has done the step.
var errTaken = errors.New("export: another worker goes on with it")

// disk is the folder of all exports. Its methods are safe for concurrent use, by several
// processes.
type disk struct {
	dir    string
	create func(name string) (file, error)
}

// file is an *os.File that is written.
type file interface {
	io.WriteCloser
	Sync() error
}

// openDisk makes the folder, and finds out whether it can be written.
func openDisk(dir string) (disk, error) {
	d := disk{dir, func(name string) (file, error) { return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) }}
	if dir == "" {
		return d, errors.New("export: Dir is empty: say where the files are kept")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return d, fmt.Errorf("export: the folder cannot be made: %w", err)
	}
	probe, err := os.MkdirTemp(dir, newPrefix)
	if err == nil {
		err = os.Remove(probe)
	}
	if err != nil {
		return d, fmt.Errorf("export: the folder cannot be written: %w", err)
	}
	return d, nil
}

func (d disk) path(ticket string, names ...string) string {
	return filepath.Join(append([]string{d.dir, ticket}, names...)...)
}

// tickets are those of the exports there are.
func (d disk) tickets() (all []string, err error) {
	entries, err := os.ReadDir(d.dir)
	for _, entry := range entries {
		if access.Ticket(entry.Name()) {
			all = append(all, entry.Name())
		}
	}
	return all, err
}

// add makes an export.
func (d disk) add(ticket string, r Request) error {
	if !access.Ticket(ticket) {
		return fmt.Errorf("export: %d characters that are no ticket", len(ticket))
	}
	tmp := d.path(newPrefix + ticket)
	if err := os.Mkdir(tmp, 0o700); err != nil {
		return err
	}
	defer os.RemoveAll(tmp) // once renamed, nothing is there
	if err := d.write(filepath.Join(tmp, requestName), r); err != nil {
		return err
	}
	return d.settle(tmp, d.path(ticket))
}

// finish ends an export. One that has failed has no parts any more.
func (d disk) finish(ticket string, e ending) error {
	e.At = time.Now().UTC()
	err := d.end(ticket, e)
	if err != nil && e.State == Failed && !errors.Is(err, errTaken) && !errors.Is(err, ErrNotFound) {
		d.clean(ticket, "part-") // the disk may be full
		err = d.end(ticket, e)
	}
	if err != nil {
		return err
	}
	d.clean(ticket, unfinished) // of runs that were killed
	if e.State == Failed {
		d.clean(ticket, "part-")
	}
	return nil
}

func (d disk) end(ticket string, e ending) error {
	tmp, err := d.begin(ticket)
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp) // once renamed, nothing is there
	if err := d.write(filepath.Join(tmp, endName+".json"), e); err != nil {
		return err
	}
	return d.settle(tmp, d.path(ticket, endName))
}

// clean deletes the folders of an export whose names begin with prefix.
func (d disk) clean(ticket, prefix string) {
	entries, _ := os.ReadDir(d.path(ticket))
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), prefix) {
			_ = os.RemoveAll(d.path(ticket, entry.Name()))
		}
	}
}

// remove makes that an export is there no more, and then deletes it.
func (d disk) remove(ticket string) error {
	if !access.Ticket(ticket) {
		return ErrNotFound
	}
	gone := d.path(gonePrefix + ticket)
	err := os.Rename(d.path(ticket), gone)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNotFound
	}
	if err != nil {
		return err
	}
	return errors.Join(syncFolder(d.dir), os.RemoveAll(gone))
}

// begin makes a folder for the next step of an export.
func (d disk) begin(ticket string) (string, error) {
	tmp := d.path(ticket, unfinished+rand.Text())
	err := os.Mkdir(tmp, 0o700)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", ErrNotFound
	case err != nil:
		return "", errors.Join(ErrDisk, err)
	}
	return tmp, nil
}

// settle makes the step that was written in the folder tmp, or is errTaken. What it
// renames to has something in it, so that no second rename gets there.
func (d disk) settle(tmp, to string) error {
	if err := syncFolder(tmp); err != nil {
		return err
	}
	switch err := os.Rename(tmp, to); {
	case errors.Is(err, fs.ErrExist):
		return errTaken
	case errors.Is(err, fs.ErrNotExist): // cancelled
		return ErrNotFound
	case err != nil:
		return err
	}
	return syncFolder(filepath.Dir(to))
}

// write writes v as JSON, whole and on the disk.
func (d disk) write(name string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	f, err := d.create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

func read(name string, v any) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, filepath.Base(name), err)
	}
	return nil
}

func folder(n int) string { return fmt.Sprintf("part-%06d", n) }

func syncFolder(name string) error {
	if runtime.GOOS == "windows" { // has no such thing
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
