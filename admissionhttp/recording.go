package admissionhttp

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/trace"
	"slices"
	"time"
)

// Recording writes what the process did in the seconds before it began to shed load, for go tool
// trace. At most one recording is written at a time and per Every.
type Recording struct {
	// Recorder is started and stopped by its owner. A process can have one Recorder.
	Recorder *trace.FlightRecorder
	// Dir gets a file for each recording. The latest Keep files stay.
	Dir string
	// To opens another destination, in place of Dir.
	To func() (io.WriteCloser, error)
	// Every is the least time between recordings. Zero means a minute.
	Every time.Duration
	// Keep is a number of files. Zero means eight.
	Keep int
}

func (c *Recording) check() error {
	switch {
	case c.Recorder == nil:
		return errors.New("Recording needs a Recorder: trace.NewFlightRecorder, and its Start")
	case (c.Dir == "") == (c.To == nil):
		return errors.New("Recording needs either Dir or To")
	case c.Every < 0 || c.Keep < 0:
		return errors.New("Recording: Every and Keep cannot be negative")
	case c.Every > 0 && c.Every < time.Millisecond:
		return fmt.Errorf("Recording: Every is %v: %s", c.Every, nanoseconds)
	}
	return nil
}

func (c *Recording) every() time.Duration {
	if c.Every == 0 {
		return time.Minute
	}
	return c.Every
}

// start writes a recording on its own goroutine, which then ends: writing takes longer than a
// refusal may.
func (c *Recording) start(log *slog.Logger) {
	go func() {
		if err := c.Write(); err != nil && log != nil {
			log.Error("no flight recording", "error", err)
		}
	}()
}

// Write writes a recording now.
func (c *Recording) Write() (err error) {
	if !c.Recorder.Enabled() {
		return errors.New("the flight recorder is not started")
	}
	var to io.WriteCloser
	if c.To != nil {
		to, err = c.To()
	} else {
		to, err = os.OpenFile(filepath.Join(c.Dir, prefix+time.Now().UTC().Format("20060102T150405.000")+suffix),
			os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	}
	if err != nil {
		return err
	}
	_, err = c.Recorder.WriteTo(to)
	err = errors.Join(err, to.Close())
	if c.To == nil {
		err = errors.Join(err, c.tidy())
	}
	return err
}

const (
	prefix = "spillway-"
	suffix = ".trace"
)

// tidy removes all but the latest recordings.
func (c *Recording) tidy() error {
	names, err := filepath.Glob(filepath.Join(c.Dir, prefix+"*"+suffix))
	if err != nil {
		return err
	}
	slices.Sort(names)
	keep := c.Keep
	if keep == 0 {
		keep = 8
	}
	for _, name := range names[:max(len(names)-keep, 0)] {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}
