package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spillway-go/spillway/load"
	"github.com/spillway-go/spillway/load/loadgen"
)

// spec is the load that the flags describe, with the files that they name.
func (c *loadCmd) spec(stdin io.Reader) (s load.Spec, err error) {
	if c.JSON {
		if c.Format == "prometheus" {
			return s, errors.New("say either --json or --format prometheus")
		}
		c.Format = "json"
	}
	if c.Rate > 0 && c.Clients > 0 {
		return s, fmt.Errorf("--rate (-q) and --clients (-c) exclude each other: for %v requests a second, at most %d of them unanswered, write --rate %v --max-in-flight %d; hey's -q is for each worker, so write --rate %v",
			c.Rate, c.Clients, c.Rate, c.Clients, float64(c.Rate)*float64(c.Clients))
	}
	fromList := c.URL == "" || c.URL == "-"
	if fromList && c.Body == "@-" {
		return s, errors.New("the body and the targets cannot both come from standard input: write -d @FILE, or a URL")
	}
	request, err := c.config(stdin)
	if err != nil {
		return s, err
	}
	request.URL, request.HTTP2, request.Timeout = c.URL, c.HTTP2, c.Timeout
	s = load.Spec{
		Request: request, Rate: float64(c.Rate), Profile: c.Profile, Clients: c.Clients, Poisson: c.Poisson, Duration: c.Duration, Requests: c.Requests,
		Interval: c.Interval, Seed: c.Seed, MaxInFlight: c.MaxInFlight,
	}
	if fromList {
		s.Request.URL = ""
		if s.Targets, err = readTargets(stdin); err != nil {
			return s, err
		}
	}
	if c.Trace != "" {
		if s.Trace, err = readTrace(c.Trace); err != nil {
			return s, err
		}
	}
	if c.Data != "" {
		if s.Request.Data, err = readRows(c.Data); err != nil {
			return s, fmt.Errorf("--data: %w", err)
		}
	}
	if c.DataRandom {
		if c.Data == "" {
			return s, errors.New("--data-random goes with --data")
		}
		s.Request.Data = s.Request.Data.Drawn(c.Seed)
	}
	if c.Mix != "" {
		text, err := os.ReadFile(c.Mix)
		if err != nil {
			return s, fmt.Errorf("--mix: %w", err)
		}
		if s.Mix, err = load.ReadMix(text); err != nil {
			return s, fmt.Errorf("--mix: %s: %w", c.Mix, err)
		}
	}
	return s, nil
}

// readTargets reads the requests that are given in place of a URL.
func readTargets(stdin io.Reader) ([]load.Target, error) {
	absent := errors.New(`expected "<url>", or targets on standard input, such as GET http://localhost:8080/`)
	if f, ok := stdin.(*os.File); ok {
		if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice != 0 { // nobody waits for what is typed
			return nil, absent
		}
	}
	text, err := io.ReadAll(stdin)
	if err == nil && len(bytes.TrimSpace(text)) == 0 {
		return nil, absent
	}
	var targets []load.Target
	if err == nil {
		targets, err = load.ReadTargets(text, os.ReadFile)
	}
	if err != nil {
		return nil, fmt.Errorf("the targets on standard input: %w", err)
	}
	return targets, nil
}

func readTrace(path string) ([]time.Duration, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--trace: %w", err)
	}
	defer f.Close()
	return loadgen.ReadTrace(f)
}

func readRows(path string) (*loadgen.Data, error) {
	read := loadgen.ReadCSV
	switch filepath.Ext(path) {
	case ".csv":
	case ".jsonl", ".ndjson":
		read = loadgen.ReadJSONLines
	default:
		return nil, fmt.Errorf("%s: want a name that ends in .csv or .jsonl", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return read(f)
}
