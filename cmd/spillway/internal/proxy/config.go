package proxy

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limiter"
)

// Config is what a proxy does.
type Config struct {
	To       *url.URL
	Listen   string        // address of the proxy
	Admin    string        // address of the page, the metrics, the probes and the mode; "": none
	Mode     limiter.Mode  //
	Deadline time.Duration // of a request without one of its own, its wait included; 0: none
	Notice   time.Duration // how long a load balancer takes to notice that the proxy is not ready
	Drain    time.Duration // how long requests may take to end when the proxy stops
	Probes   []string      // paths of health checks, besides the usual ones
	Trust    []netip.Prefix
	Routes   []*Route
}

// Route is what a file says of some requests.
type Route struct {
	Match    string                  `yaml:"match"` // a pattern of http.ServeMux
	Priority text[spillway.Priority] `yaml:"priority"`
	Deadline text[time.Duration]     `yaml:"deadline"`
	Long     bool                    `yaml:"long"` // streams, long polls, large downloads: they hold no slot

	at string // the file and the line
}

// text is a value that is given as text. Its errors tell their line.
type text[T any] struct{ value *T }

// UnmarshalYAML reads the value.
func (t *text[T]) UnmarshalYAML(n *yaml.Node) error {
	t.value = new(T)
	var err error
	switch to := any(t.value).(type) {
	case *time.Duration:
		if *to, err = time.ParseDuration(n.Value); err == nil && *to < 0 {
			err = errors.New("a time cannot be negative")
		}
	case *netip.Prefix:
		if *to, err = netip.ParsePrefix(n.Value); err != nil {
			err = fmt.Errorf("%q is no network: want one such as 10.0.0.0/8, or 10.0.0.1/32 for one address", n.Value)
		}
	case encoding.TextUnmarshaler:
		err = to.UnmarshalText([]byte(n.Value))
	}
	if err != nil { // of this kind yaml collects all, and goes on
		return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: %s", n.Line, strings.TrimPrefix(err.Error(), "spillway: "))}}
	}
	return nil
}

// or is the value, or the other one if there is none.
func (t text[T]) or(other T) T {
	if t.value == nil {
		return other
	}
	return *t.value
}

// file is what a file may say. What it leaves out stays as it was.
type file struct {
	To       text[target]         `yaml:"to"`
	Listen   *string              `yaml:"listen"`
	Admin    *string              `yaml:"admin"`
	Mode     text[limiter.Mode]   `yaml:"mode"`
	Deadline text[time.Duration]  `yaml:"deadline"`
	Notice   text[time.Duration]  `yaml:"notice"`
	Drain    text[time.Duration]  `yaml:"drain"`
	Probes   []text[path]         `yaml:"probes"`
	Trust    []text[netip.Prefix] `yaml:"trust"`
	Routes   []*Route             `yaml:"routes"`
}

// Example is a file with all that it may say.
const Example = `# spillway proxy --file proxy.yaml; a flag wins over this file.
to: http://127.0.0.1:8081    # the service; h2c:// for gRPC and HTTP/2 without TLS
listen: :8080                # where requests come in
admin: 127.0.0.1:9090        # the page, /metrics, /livez, /readyz and /mode, for operators only; "" for none
mode: dryrun                 # decide and count, refuse nothing; then enforce. off: only pass on
deadline: 2s                 # of a request, its wait included: what cannot be answered in time is refused at once
notice: 5s                   # at a stop: until the load balancer has seen that /readyz answers 503
drain: 20s                   # at a stop: until what was admitted has ended

probes: [/my/health]         # further health checks: a GET is never refused (the usual paths never are)
trust: [10.0.0.0/8]          # callers whose header Spillway-Priority is believed

routes:                      # patterns as those of Go's http.ServeMux; the most specific one counts
- match: POST /orders
  priority: critical         # low, normal, high, critical
  deadline: 1s
- match: GET /orders/{id}
- match: GET /reports/
  priority: low
  deadline: 30s
- match: GET /events
  long: true                 # streams, long polls, large downloads: they hold no slot and have no deadline
`

// ReadFile reads a file into cfg. Its errors name the file and the line.
func (cfg *Config) ReadFile(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return cfg.read(name, text)
}

func (cfg *Config) read(name string, source []byte) error {
	decoder := yaml.NewDecoder(bytes.NewReader(source))
	decoder.KnownFields(true)
	var f file
	if err := decoder.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return inFile(name, err)
	}
	if f.To.value != nil {
		cfg.To = f.To.value.URL
	}
	if f.Listen != nil {
		cfg.Listen = *f.Listen
	}
	if f.Admin != nil {
		cfg.Admin = *f.Admin
	}
	cfg.Mode, cfg.Deadline = f.Mode.or(cfg.Mode), f.Deadline.or(cfg.Deadline)
	cfg.Notice, cfg.Drain = f.Notice.or(cfg.Notice), f.Drain.or(cfg.Drain)
	for _, p := range f.Probes {
		cfg.Probes = append(cfg.Probes, string(*p.value))
	}
	for _, n := range f.Trust {
		cfg.Trust = append(cfg.Trust, *n.value)
	}
	if err := decoder.Decode(new(yaml.Node)); err == nil {
		return fmt.Errorf("%s: has more than one document: everything belongs above the ---", name)
	}
	cfg.Routes = f.Routes
	var wrong []error
	for i, line := range linesOf(source) {
		at := fmt.Sprintf("%s:%d", name, line)
		r := cfg.Routes[i]
		if r == nil || r.Match == "" {
			wrong = append(wrong, fmt.Errorf("%s: a route needs a match, such as GET /orders/{id}", at))
			continue
		}
		r.at = at
		method, _, _ := strings.Cut(r.Match, " ")
		switch {
		case method != r.Match && method != strings.ToUpper(method):
			wrong = append(wrong, fmt.Errorf("%s: %s: a method is in capitals, such as GET", at, r.Match))
		case r.Long && r.Deadline.value != nil:
			wrong = append(wrong, fmt.Errorf("%s: %s is long, and has a deadline: leave out one of the two", r.at, r.Match))
		}
	}
	_, err := lookUp(cfg.Routes)
	return errors.Join(append(wrong, err)...)
}

// linesOf are the lines on which the routes of a file begin.
func linesOf(source []byte) (lines []int) {
	var f struct {
		Routes []yaml.Node `yaml:"routes"`
	}
	_ = yaml.Unmarshal(source, &f) // which went well before
	for _, n := range f.Routes {
		lines = append(lines, n.Line)
	}
	return lines
}

// path is that of a health check.
type path string

// UnmarshalText parses a path.
func (p *path) UnmarshalText(text []byte) error {
	if *p = path(text); !strings.HasPrefix(string(*p), "/") || *p == "/" {
		return fmt.Errorf("%q: a path of a health check begins with a slash, and is not the root", text)
	}
	return nil
}

// target is the address of a service.
type target struct{ *url.URL }

// UnmarshalText parses an address.
func (t *target) UnmarshalText(text []byte) (err error) {
	t.URL, err = Target(string(text))
	return err
}

// inFile puts the name of the file before the line of each error.
func inFile(name string, err error) error {
	var lines []string
	if many, ok := errors.AsType[*yaml.TypeError](err); ok {
		lines = many.Errors
	} else {
		lines = []string{strings.TrimPrefix(err.Error(), "yaml: ")}
	}
	for i, line := range lines {
		line, _, _ = strings.Cut(line, " in type ") // a name of Go
		if rest, ok := strings.CutPrefix(line, "line "); ok {
			lines[i] = name + ":" + rest
		} else {
			lines[i] = name + ": " + line
		}
	}
	return errors.New(strings.Join(lines, "\n"))
}

// Target is the address of a service.
func Target(text string) (*url.URL, error) {
	to, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q is no URL: want one such as http://127.0.0.1:8081", text)
	case to.Scheme != "http" && to.Scheme != "https" && to.Scheme != "h2c" || to.Host == "":
		return nil, fmt.Errorf("%q: want http://, https:// or h2c:// and a host, such as http://127.0.0.1:8081", text)
	case to.Port() != "" && !isPort(to.Port()):
		return nil, fmt.Errorf("%q: a port is a number up to 65535", text)
	case to.RawQuery != "" || to.Fragment != "" || to.User != nil:
		return nil, fmt.Errorf("%q: want a scheme, a host and perhaps a path, and nothing else", text)
	}
	return to, nil
}

func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

// Check says what cannot work of what a file and flags say together.
func (cfg *Config) Check() error {
	for name, address := range map[string]string{"listen": cfg.Listen, "admin": cfg.Admin} {
		if _, err := net.ResolveTCPAddr("tcp", address); address != "" && err != nil || address == "" && name == "listen" {
			return fmt.Errorf("%s: %q is no address: want one such as :8080 or 127.0.0.1:9090", name, address)
		}
	}
	return nil
}
