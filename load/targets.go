package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spillway-go/spillway/load/loadgen"
)

// Target is one request of a list.
type Target struct {
	Method, URL string
	Header      http.Header
	Body        []byte
}

// ReadTargets reads a list of requests in the form of vegeta: a line such as "GET http://host/path",
// then lines of headers, then "@" and the name of a file with the body. Headers and body may be left
// out. An empty line ends a target, as the next target does, and a line that begins with # is a
// comment. read returns what a file holds; ReadTargets calls it once for each name.
func ReadTargets(text []byte, read func(name string) ([]byte, error)) (targets []Target, err error) {
	files := map[string][]byte{}
	var t *Target // the headers and the body of t may follow
	number := 0
	for line := range bytes.Lines(bytes.TrimPrefix(text, []byte("\ufeff"))) {
		number++
		line := string(bytes.TrimSpace(line))
		method, address, isRequest := requestLine(line)
		name, value, isHeader := strings.Cut(line, ":")
		file, isBody := strings.CutPrefix(line, "@")
		switch {
		case line == "":
			t = nil
		case line[0] == '#':
		case isRequest:
			if strings.ContainsAny(address, " \t") {
				return nil, fmt.Errorf("line %d: URL %.200q: want nothing behind it, and %%20 for a space in it", number, address)
			}
			if _, err := targetURL(address); err != nil {
				return nil, fmt.Errorf("line %d: %w", number, err)
			}
			targets = append(targets, Target{Method: method, URL: address})
			t = &targets[len(targets)-1]
		case t == nil:
			return nil, fmt.Errorf("line %d is %.60q: want a method and a URL, such as GET http://localhost:8080/", number, line)
		case isBody:
			body, known := files[file]
			if !known {
				if body, err = read(file); err != nil {
					return nil, fmt.Errorf("line %d: the body: %w", number, err)
				}
				files[file] = body
			}
			t.Body, t = body, nil
		case isHeader:
			if t.Header == nil {
				t.Header = http.Header{}
			}
			t.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
		default:
			return nil, fmt.Errorf("line %d is %.60q: want a header such as Accept: text/html, @ and a file with the body, or the next method and URL", number, line)
		}
	}
	if len(targets) == 0 {
		return nil, errors.New("no targets: want lines such as GET http://localhost:8080/")
	}
	return targets, nil
}

// requestLine splits a line that begins with a method, in capital letters.
func requestLine(line string) (method, address string, ok bool) {
	method, address, ok = strings.Cut(line, " ")
	if !ok || method == "" || strings.Trim(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") != "" {
		return "", "", false
	}
	return method, strings.TrimSpace(address), true
}

func targetURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, fmt.Errorf("URL %.200q: want http://host:port/path or https://host:port/path", address)
	}
	return u, nil
}

// inTurn sends the requests of a list one after the other, and then begins again.
type inTurn []turn

type turn struct {
	to *loadgen.HTTP
	n  uint64 // number of the request among those of to
}

func (l inTurn) Do(ctx context.Context, n uint64) loadgen.Outcome {
	t := l[n%uint64(len(l))]
	return t.to.Do(ctx, t.n)
}

// alike are targets that differ in nothing but the path.
type alike struct {
	cfg  loadgen.HTTPConfig
	urls []string
}

// aimAt makes the targets of a list. What a target does not say is that of base.
func aimAt(p *Plan, base loadgen.HTTPConfig, targets []Target) error {
	type key struct{ host, method, header, body string }
	groups := map[key]int{}
	var all []*alike
	list := make(inTurn, len(targets))
	of := make([]int, len(targets))
	for i, t := range targets {
		u, err := targetURL(t.URL)
		if err != nil {
			return fmt.Errorf("target %d: %w", i+1, err)
		}
		cfg := t.request(base)
		var header strings.Builder
		if err := cfg.Header.Write(&header); err != nil {
			return fmt.Errorf("target %d: %w", i+1, err)
		}
		k := key{(&url.URL{Scheme: u.Scheme, User: u.User, Host: u.Host}).String(), cfg.Method, header.String(), string(cfg.Body)}
		g, known := groups[k]
		if !known {
			g, groups[k] = len(all), len(all)
			all = append(all, &alike{cfg: cfg})
		}
		of[i], list[i].n = g, uint64(len(all[g].urls))
		all[g].urls = append(all[g].urls, t.URL)
	}
	for _, a := range all {
		if len(a.urls) == 1 {
			a.cfg.URL = a.urls[0]
		} else {
			a.cfg.URLFor = func(n uint64) string { return a.urls[n] }
		}
		if len(p.Targets) > 0 {
			a.cfg.Beside = p.Targets[0] // as many connections as requests in flight, however many targets
		}
		target, err := loadgen.NewHTTP(a.cfg)
		if err != nil {
			return fmt.Errorf("target %s %s: %w", a.cfg.Method, a.urls[0], err)
		}
		p.Targets = append(p.Targets, target)
	}
	for i, g := range of {
		list[i].to = p.Targets[g]
	}
	p.Run.Target = list
	return nil
}

// request is the target's request, with what the target does not say from base. Braces have no
// meaning in it.
func (t Target) request(base loadgen.HTTPConfig) loadgen.HTTPConfig {
	cfg := base
	cfg.Method, cfg.Data, cfg.Header = t.Method, nil, base.Header.Clone()
	if cfg.Header == nil {
		cfg.Header = http.Header{}
	}
	for name, values := range t.Header {
		cfg.Header[http.CanonicalHeaderKey(name)] = values
	}
	if t.Body != nil {
		cfg.Body = t.Body
	}
	return cfg
}
