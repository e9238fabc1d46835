package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/loadgen"
)

// mixEntry is a kind of request in the file of --mix.
type mixEntry struct {
	Class    string            `json:"class"`
	Weight   *float64          `json:"weight"`
	Priority string            `json:"priority"`
	Path     string            `json:"path"`
	Method   string            `json:"method"`
	Headers  map[string]string `json:"headers"`
	Body     string            `json:"body"`
}

// aim makes the targets, and returns the classes of their requests.
func (c *loadCmd) aim(plan *loadPlan) (classes []string, err error) {
	base, err := c.request()
	if err != nil {
		return nil, err
	}
	if c.Mix == "" {
		target, err := loadgen.NewHTTP(base)
		if err != nil {
			return nil, err
		}
		plan.targets, plan.run.Target = []*loadgen.HTTP{target}, target
		return nil, nil
	}
	entries, err := readMix(c.Mix)
	if err != nil {
		return nil, err
	}
	var parts []loadgen.Part
	for i, e := range entries {
		cfg, class, err := e.request(base)
		if err != nil {
			return nil, fmt.Errorf("--mix: request %d: %w", i+1, err)
		}
		target, err := loadgen.NewHTTP(cfg)
		if err != nil {
			return nil, fmt.Errorf("--mix: request %d: %w", i+1, err)
		}
		weight := 1.0
		if e.Weight != nil {
			weight = *e.Weight
		}
		plan.targets = append(plan.targets, target)
		parts = append(parts, loadgen.Part{Class: class, Weight: weight, Target: target})
		classes = append(classes, class)
	}
	plan.run.Target, err = loadgen.Mix(c.Seed, parts...)
	return classes, err
}

// request is what the flags say about every request.
func (c *loadCmd) request() (loadgen.HTTPConfig, error) {
	h, err := c.config(c.URL)
	if err != nil {
		return h, err
	}
	h.Timeout, h.HTTP2, h.Data = c.Timeout, c.HTTP2, &loadgen.Data{}
	if c.Data != "" {
		data, err := readData(c.Data)
		if err != nil {
			return h, fmt.Errorf("--data: %w", err)
		}
		if c.DataRandom {
			data = data.Drawn(c.Seed)
		}
		h.Data = data
	}
	return h, nil
}

func readData(path string) (*loadgen.Data, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	switch filepath.Ext(path) {
	case ".csv":
		return loadgen.ReadCSV(f)
	case ".jsonl", ".ndjson":
		return loadgen.ReadJSONLines(f)
	}
	return nil, fmt.Errorf("%s: want a name that ends in .csv or .jsonl", path)
}

func readMix(path string) (entries []mixEntry, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--mix: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&entries); err != nil {
		return nil, fmt.Errorf("--mix: %s is no list of requests: %w", path, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("--mix: %s: want one list and nothing behind it", path)
	}
	return entries, nil
}

// request is the entry's request, with what it does not say from base.
func (e mixEntry) request(base loadgen.HTTPConfig) (cfg loadgen.HTTPConfig, class string, err error) {
	cfg = base
	cfg.Header = base.Header.Clone()
	for name, value := range e.Headers {
		cfg.Header.Set(name, value)
	}
	if e.Priority != "" {
		p, err := spillway.ParsePriority(e.Priority)
		if err != nil {
			return cfg, "", err
		}
		e.Priority = p.String()
		cfg.Header.Set(admissionhttp.HeaderPriority, e.Priority)
	}
	if e.Method != "" {
		cfg.Method = strings.ToUpper(e.Method)
	}
	if e.Body != "" {
		cfg.Body = []byte(e.Body)
	}
	if e.Path != "" {
		if cfg.URL, err = atPath(base.URL, e.Path); err != nil {
			return cfg, "", err
		}
	}
	return cfg, cmp.Or(e.Class, e.Priority, e.Path, "other"), nil
}

// atPath is another path on the host of a URL. Both may have placeholders.
func atPath(url, path string) (string, error) {
	if path[0] != '/' {
		return "", fmt.Errorf("path %q: want one that begins with /", path)
	}
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		return "", fmt.Errorf("URL %q: want http://host:port", url)
	}
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	return scheme + "://" + rest + path, nil
}
