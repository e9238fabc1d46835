package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/load/loadgen"
)

// defaultTime is how long to send if nothing says so.
const defaultTime = 10 * time.Second

// Plan is a load that can be run. Close it.
type Plan struct {
	Run     loadgen.Config
	Targets []*loadgen.HTTP
	Classes []string // of a mix
}

// Plan checks everything that can be checked before anything is sent.
func (s *Spec) Plan() (*Plan, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	p := &Plan{Run: loadgen.Config{MaxInFlight: s.MaxInFlight, Interval: s.Interval}}
	if s.Clients > 0 {
		p.Run.Closed = &loadgen.Closed{Clients: s.Clients, Requests: s.Requests, Duration: s.Duration}
		if s.Duration == 0 && s.Requests == 0 {
			p.Run.Closed.Duration = defaultTime
		}
	} else {
		var err error
		if p.Run.Open, err = s.schedule(); err != nil {
			return nil, err
		}
	}
	err := s.aim(p)
	if err == nil {
		err = p.Run.Check()
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Close closes the connections of the targets.
func (p *Plan) Close() {
	for _, t := range p.Targets {
		t.Close()
	}
}

// Reach reports whether a server is at the address.
func (p *Plan) Reach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return p.Targets[0].Reach(ctx)
}

// FirstError returns the first error behind an Error outcome, or nil.
func (p *Plan) FirstError() error {
	for _, t := range p.Targets {
		if err := t.FirstError(); err != nil {
			return err
		}
	}
	return nil
}

// Traffic returns how many bytes were sent and received.
func (p *Plan) Traffic() (sent, received uint64) {
	for _, t := range p.Targets {
		s, r := t.Traffic()
		sent, received = sent+s, received+r
	}
	return sent, received
}

// schedule is when the requests of an open loop start.
func (s *Spec) schedule() (loadgen.Schedule, error) {
	d := s.Duration
	switch {
	case len(s.Trace) > 0:
		return loadgen.Trace(s.Trace), nil
	case s.Profile != "":
		legs, err := loadgen.ParseLegs(s.Profile)
		if err != nil {
			return nil, err
		}
		if d > 0 {
			legs = loadgen.Repeat(d, legs...)
		}
		if s.Poisson {
			return loadgen.Random(s.Seed, legs...), nil
		}
		return loadgen.Even(legs...), nil
	case s.Requests > 0: // half a gap more than the last one needs
		d = time.Duration((float64(s.Requests) - 0.5) / s.Rate * float64(time.Second))
	case d == 0:
		d = defaultTime
	}
	if s.Poisson {
		return loadgen.Poisson(s.Rate, d, s.Seed), nil
	}
	return loadgen.Constant(s.Rate, d), nil
}

func (s *Spec) check() error {
	ways := 0
	for _, chosen := range []bool{s.Rate > 0, s.Profile != "", len(s.Trace) > 0, s.Clients > 0} {
		if chosen {
			ways++
		}
	}
	switch {
	case math.IsNaN(s.Rate) || math.IsInf(s.Rate, 0):
		return fmt.Errorf("--rate is %v: want a number of requests a second, or --clients N for as many as N clients can send", s.Rate)
	case s.Rate < 0 || s.Clients < 0 || s.Duration < 0 || s.Request.Timeout < 0 || s.MaxInFlight < 1:
		return errors.New("--rate, --clients, --duration and --timeout cannot be negative, and --max-in-flight must be at least 1")
	case s.Interval < time.Millisecond:
		return fmt.Errorf("interval is %v: want at least 1ms", s.Interval)
	case ways != 1:
		if ways > 1 {
			return errors.New("--rate, --profile, --trace and --clients exclude each other: use one of them")
		}
		return errors.New("say how much load: either --rate N (requests a second), --profile, --trace or --clients N")
	case s.Poisson && s.Rate == 0 && s.Profile == "":
		return errors.New("--poisson goes with --rate or --profile")
	case s.Requests > 0 && s.Rate == 0 && s.Clients == 0:
		return errors.New("--requests goes with --rate or --clients: a profile or a trace says itself how many there are")
	case s.Duration > 0 && len(s.Trace) > 0:
		return errors.New("--duration does not go with --trace: the trace says itself how long it is")
	case s.Rate > 0 && s.Requests > 0 && s.Duration > 0:
		return errors.New("with --rate, say either --duration or --requests: one follows from the other")
	case len(s.Targets) > 0 && (s.Request.URL != "" || s.Mix != nil || s.Request.Data != nil || s.Request.Method != ""):
		return errors.New("a list of targets says itself what is sent where: leave out the URL, --method, --data and --mix")
	}
	return nil
}

// aim makes the targets.
func (s *Spec) aim(p *Plan) error {
	if len(s.Targets) > 0 {
		return aimAt(p, s.Request, s.Targets)
	}
	base := s.Request
	if base.Data == nil {
		base.Data = &loadgen.Data{} // {{n}} is the number of the request
	}
	if s.Mix == nil {
		target, err := loadgen.NewHTTP(base)
		if err != nil {
			return err
		}
		p.Targets, p.Run.Target = []*loadgen.HTTP{target}, target
		return nil
	}
	var err error
	var parts []loadgen.Part
	for i, e := range s.Mix {
		cfg, class, err := e.request(base)
		if err != nil {
			return fmt.Errorf("--mix: request %d: %w", i+1, err)
		}
		target, err := loadgen.NewHTTP(cfg)
		if err != nil {
			return fmt.Errorf("--mix: request %d: %w", i+1, err)
		}
		weight := 1.0
		if e.Weight != nil {
			weight = *e.Weight
		}
		p.Targets = append(p.Targets, target)
		parts = append(parts, loadgen.Part{Class: class, Weight: weight, Target: target})
		p.Classes = append(p.Classes, class)
	}
	p.Run.Target, err = loadgen.Mix(s.Seed, parts...)
	return err
}

// request is the entry's request, with what it does not say from base.
func (e Entry) request(base loadgen.HTTPConfig) (cfg loadgen.HTTPConfig, class string, err error) {
	cfg = base
	if cfg.Header = base.Header.Clone(); cfg.Header == nil {
		cfg.Header = http.Header{}
	}
	for name, value := range e.Headers {
		cfg.Header.Set(name, value)
	}
	if e.Priority != "" {
		var p spillway.Priority
		if err := p.UnmarshalText([]byte(e.Priority)); err != nil {
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
