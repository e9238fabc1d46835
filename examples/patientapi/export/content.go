package export

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/access"
)

// Content is a file of an export that is complete. Close it.
type Content struct {
	*os.File
	Type     access.Resource
	Patients []string // whose data is in it, or in the other files of the same part
	Modified time.Time
}

// Open opens one of the files that Status lists. The error is as that of Status.
func (e *Exports) Open(ticket, name string) (*Content, error) {
	kind, n, ok := parseName(name)
	if !ok || !access.Ticket(ticket) {
		return nil, ErrNotFound
	}
	var end ending
	var p part
	c := &Content{Type: kind}
	err := read(e.disk.path(ticket, endName, endName+".json"), &end)
	if errors.Is(err, fs.ErrNotExist) || err == nil && (end.State != Complete || n > end.Parts) {
		return nil, ErrNotFound
	}
	if err == nil {
		err = read(e.disk.path(ticket, folder(n), partName), &p)
	}
	if err == nil {
		err = read(e.disk.path(ticket, folder(n), peopleName), &c.Patients)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: part %d is missing", ErrDamaged, n)
	}
	if err != nil {
		return nil, err
	}
	for _, f := range p.Files {
		if f.Type == kind {
			c.Modified = p.At
			if err := c.open(e.disk.path(ticket, folder(n), string(kind)), f.Bytes); err != nil {
				return nil, err
			}
			return c, nil
		}
	}
	return nil, ErrNotFound
}

// open opens the file if it is as long as it was.
func (c *Content) open(name string, size int64) (err error) {
	c.File, err = os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: a file is missing", ErrDamaged)
	}
	if err != nil {
		return err
	}
	info, err := c.File.Stat()
	if err == nil && info.Size() != size {
		err = fmt.Errorf("%w: a file has %d of %d bytes", ErrDamaged, info.Size(), size)
	}
	if err != nil {
		_ = c.File.Close()
	}
	return err
}

const suffix = ".ndjson"

// fileName is the name of the file with those resources of part n.
func fileName(t access.Resource, n int) string { return fmt.Sprintf("%s-%06d%s", t, n, suffix) }

func parseName(name string) (t access.Resource, n int, ok bool) {
	kind, number, _ := strings.Cut(strings.TrimSuffix(name, suffix), "-")
	n, err := strconv.Atoi(number)
	t = access.Resource(kind)
	for _, known := range Types {
		if t == known && err == nil && n > 0 {
			return t, n, name == fileName(t, n)
		}
	}
	return "", 0, false
}
