package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/cmd/spillway/internal/proxy"
	"github.com/spillway-go/spillway/limiter"
)

type proxyCmd struct {
	To       string         `placeholder:"URL" help:"The service: http://, https://, or h2c:// for gRPC."`
	Listen   *string        `placeholder:"ADDR" help:"Where requests come in; :8080 unless the file says another."`
	Admin    *string        `placeholder:"ADDR" help:"Where operators look: the page, /metrics, /livez, /readyz, /mode; 127.0.0.1:9090 unless the file says another; empty for none."`
	Deadline *time.Duration `placeholder:"TIME" help:"How long a request may take, its wait included; none unless the file says one."`
	Mode     *limiter.Mode  `placeholder:"MODE" help:"enforce, dryrun (decide and count, refuse nothing) or off; also SPILLWAY_MODE."`
	File     string         `placeholder:"FILE" help:"Routes, priorities and all of the above: YAML."`
	Check    bool           `xor:"what" help:"Only check the flags and the file."`
	Example  bool           `xor:"what" help:"Print a file to start from, with everything explained."`
}

// Help teaches.
func (proxyCmd) Help() string {
	return `A limiter in front of any HTTP service, as a sidecar or in front of several: it finds by itself how much may run at once, lets a bounded number wait, and answers the rest 503 with Retry-After at once. HTTP/1.1, HTTP/2 without TLS, gRPC, websockets, server-sent events and trailers pass through. No number is needed: start with --mode dryrun for a day with its peak, read on the page what would have been refused, then enforce.

What the client sent goes on as it was; this hop is added to X-Forwarded-For. Spillway-Priority of a caller is believed only from the networks that the file trusts, and Spillway-Deadline can only make a deadline earlier. A GET of a usual health path (/livez, /readyz, /healthz, /metrics ...) is never refused.

At SIGTERM the proxy is not ready for five seconds (notice), cuts streams, answers what it has admitted, for twenty seconds at most (drain), and closes; at a second one it ends at once. At SIGHUP it reads the routes and the trust again.

Examples:
  spillway proxy --to http://127.0.0.1:8081 --mode dryrun
  open http://127.0.0.1:9090/                     what is refused, fails or is late, and why
  curl -X PUT http://127.0.0.1:9090/mode/enforce  until the next restart, which takes the mode from the file or the flag
  spillway proxy --example > proxy.yaml           routes, priorities and deadlines; edit it, then:
  spillway proxy --file proxy.yaml --check && spillway proxy --file proxy.yaml
  spillway proxy --to h2c://127.0.0.1:50051       in front of gRPC

deploy/proxy/sidecar.yaml and deploy/proxy/spillway-proxy.service run it.

Exit codes: 0 stopped, and everything was answered; 1 an address is in use, or work was left when it stopped; 2 bad input.`
}

func (c *proxyCmd) Run(env *environment) error {
	if c.Example {
		_, err := fmt.Fprint(env.stdout, proxy.Example)
		return err
	}
	read := func() (proxy.Config, error) {
		cfg, err := c.config()
		if err != nil {
			err = badInput(errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))) // all faults of a file, one after the other
		}
		return cfg, err
	}
	if c.Check {
		cfg, err := read()
		if err == nil {
			_, err = fmt.Fprintf(env.stdout, "fine: to %s, routes: %d\n", cfg.To, len(cfg.Routes))
		}
		return err
	}
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	return proxy.Serve(env.ctx, read, reload, slog.New(slog.NewTextHandler(env.stderr, nil)))
}

// config is what the file says, and the flags over it.
func (c *proxyCmd) config() (proxy.Config, error) {
	cfg := proxy.Config{Listen: ":8080", Admin: "127.0.0.1:9090", Notice: 5 * time.Second, Drain: 20 * time.Second}
	mode, err := admissionhttp.ModeFromEnv()
	if err != nil {
		return cfg, err
	}
	cfg.Mode = mode
	if c.File != "" {
		if err := cfg.ReadFile(c.File); err != nil {
			return cfg, err
		}
	}
	if c.To != "" {
		if cfg.To, err = proxy.Target(c.To); err != nil {
			return cfg, fmt.Errorf("--to: %w", err)
		}
	}
	if cfg.To == nil {
		return cfg, fmt.Errorf("which service? Say --to http://127.0.0.1:8081, or to: in a --file")
	}
	if c.Listen != nil {
		cfg.Listen = *c.Listen
	}
	if c.Admin != nil {
		cfg.Admin = *c.Admin
	}
	if c.Deadline != nil {
		cfg.Deadline = *c.Deadline
	}
	if c.Mode != nil {
		cfg.Mode = *c.Mode
	}
	if err := cfg.Check(); err != nil {
		return cfg, err
	}
	if cfg.Deadline < 0 {
		return cfg, fmt.Errorf("--deadline: a time cannot be negative")
	}
	return cfg, nil
}
