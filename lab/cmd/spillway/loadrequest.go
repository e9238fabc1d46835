package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spillway-go/spillway/load"
	"github.com/spillway-go/spillway/loadgen"
)

// spec is the load that the flags describe, with the files that they name.
func (c *loadCmd) spec() (s load.Spec, err error) {
	if c.JSON {
		if c.Format == "prometheus" {
			return s, errors.New("say either --json or --format prometheus")
		}
		c.Format = "json"
	}
	request, err := c.config(c.URL)
	if err != nil {
		return s, err
	}
	s = load.Spec{
		URL: c.URL, Rate: c.Rate, Profile: c.Profile, Clients: c.Clients, Poisson: c.Poisson, Duration: c.Duration, Requests: c.Requests,
		Method: request.Method, Header: request.Header, Body: request.Body, Insecure: c.Insecure, HTTP2: c.HTTP2, DataRandom: c.DataRandom,
		Timeout: c.Timeout, Interval: c.Interval, Seed: c.Seed, MaxInFlight: c.MaxInFlight,
	}
	if c.Trace != "" {
		if s.Trace, err = readTrace(c.Trace); err != nil {
			return s, err
		}
	}
	if c.Data != "" {
		if s.Data, err = readRows(c.Data); err != nil {
			return s, fmt.Errorf("--data: %w", err)
		}
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

func readTrace(path string) ([]time.Duration, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--trace: %w", err)
	}
	defer f.Close()
	return loadgen.ReadTrace(f)
}

func readRows(path string) (rows load.Rows, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return rows, err
	}
	switch filepath.Ext(path) {
	case ".csv":
		return load.Rows{Format: "csv", Text: text}, nil
	case ".jsonl", ".ndjson":
		return load.Rows{Format: "jsonl", Text: text}, nil
	}
	return rows, fmt.Errorf("%s: want a name that ends in .csv or .jsonl", path)
}
