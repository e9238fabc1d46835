package export

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/access"
	"github.com/spillway-go/spillway/examples/patientapi/internal/discreet"
)

const (
	longestSweep = 10 * time.Minute
	// abandoned is after how long what was being added is nobody's.
	abandoned = time.Hour
)

// sweep deletes what has expired, and what killed processes have left, until ctx ends.
func (e *Exports) sweep(ctx context.Context) {
	ticker := time.NewTicker(max(min(e.cfg.Keep/20, longestSweep), time.Second))
	defer ticker.Stop()
	for {
		e.revive(ctx)
		if err := e.expire(); err != nil {
			e.cfg.Logger.Warn("exports that have expired are not deleted", "error", discreet.Text(err.Error()))
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// revive makes jobs for exports that are not finished, if the queue has none at all: it
// was deleted, or was in the memory of a process, or the process that was to give it one
// was killed. A job too many does no harm.
func (e *Exports) revive(ctx context.Context) {
	depth, err := e.cfg.Queue.Stats(ctx)
	if err != nil || depth.Ready+depth.Delayed+depth.InFlight > 0 {
		return
	}
	tickets, _ := e.disk.tickets() // expire tells why not
	for _, ticket := range tickets {
		if x, err := e.disk.load(ticket); err != nil || x.end != nil {
			continue
		}
		if err := e.enqueue(ctx, "", ticket); err != nil {
			e.cfg.Logger.Warn("an export has no job", "export", ticket[:8], "error", discreet.Text(err.Error()))
		}
	}
}

// expire deletes what is too old. One export that cannot be read does not keep the others.
func (e *Exports) expire() error {
	entries, err := os.ReadDir(e.disk.dir)
	for _, entry := range entries {
		name := entry.Name()
		switch {
		case access.Ticket(name):
			if changed, ok := e.changed(name, entry); ok && time.Since(changed) > e.cfg.Keep {
				if gone := e.disk.remove(name); gone != nil && !errors.Is(gone, ErrNotFound) {
					err = errors.Join(err, gone)
				}
			}
		case strings.HasPrefix(name, gonePrefix):
			err = errors.Join(err, os.RemoveAll(e.disk.path(name)))
		case strings.HasPrefix(name, newPrefix):
			if info, bad := entry.Info(); bad == nil && time.Since(info.ModTime()) > abandoned {
				err = errors.Join(err, os.RemoveAll(e.disk.path(name)))
			}
		}
	}
	return err
}

// changed is when the export last was. Of one that is damaged, the disk says it.
func (e *Exports) changed(ticket string, entry os.DirEntry) (time.Time, bool) {
	x, err := e.disk.load(ticket)
	if err == nil {
		return x.changed(), true
	}
	info, bad := entry.Info()
	if !errors.Is(err, ErrDamaged) || bad != nil {
		return time.Time{}, false
	}
	return info.ModTime(), true
}
