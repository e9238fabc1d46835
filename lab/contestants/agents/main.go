// Command agents sends load from several processes, through a NATS server. spillway load
// starts it to coordinate them, and spillway agent becomes it. In a container it runs
// without the rest of Spillway.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/spillway-go/spillway/load/agents"
)

type commandLine struct {
	Agent      agentCmd      `cmd:"" help:"Wait for loads, and send a share of each."`
	Coordinate coordinateCmd `cmd:"" hidden:"" help:"Do what is said on standard input; spillway load starts this."`
}

type agentCmd struct {
	agents.Server `embed:""`

	Once   bool   `help:"End after one load that began, with 0 if it was sent to its end. Without it the agent waits for the next one."`
	Name   string `placeholder:"NAME" help:"What reports call this agent; otherwise its host and process."`
	Parent bool   `hidden:"" help:"Started by the coordinator: end when standard input does, and say nothing."`
}

// Help teaches.
func (agentCmd) Help() string {
	return `An agent sends its share of every load that "spillway load --nats URL" gives to all agents of the same NATS server. It knows nothing of the load before: the coordinator sends the URL, the schedule, the headers and the data. The target must be reachable from here, and whoever may use that NATS server decides what this machine sends: give it credentials of its own.

When the coordinator falls silent for 1.5 s, the agent stops sending. When it is told to end (Ctrl-C, SIGTERM) it stops sending, delivers what it has measured, and the run is marked invalid.

Examples: on each of some machines, and then on any
  export SPILLWAY_NATS_TOKEN=…
  spillway agent --nats nats://nats.example:4222
  spillway load --nats nats://nats.example:4222 --agents 4 --rate 20000 --duration 1m http://service.example/

Environment: SPILLWAY_AGENT_NATS is --nats, SPILLWAY_AGENT_ONCE is --once, and so on. The token is in SPILLWAY_NATS_TOKEN or in a file, never on the command line.

Exit codes: 0 told to end, or with --once the load was sent; 1 the coordinator was lost or the result not delivered; 2 bad input.`
}

func (c *agentCmd) Run() error {
	if err := c.Check(os.Args[1:]); err != nil {
		return agents.Input(err)
	}
	token, err := c.Token()
	if err != nil {
		return agents.Input(err)
	}
	if c.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "agent"
		}
		c.Name = fmt.Sprintf("%s/%d", host, os.Getpid())
	}
	if c.Parent {
		return c.child(token)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second one ends it at once
	ctx, refuse := context.WithCancelCause(ctx)
	log := func(line string) { fmt.Fprintln(os.Stderr, line) }
	bus, err := dial(c.Server, token, "spillway agent "+c.Name, patient(log, refuse)...)
	if err != nil {
		return err
	}
	log("waiting for a load; Ctrl-C ends")
	err = agents.Serve(ctx, bus, agents.AgentConfig{Name: c.Name, Once: c.Once, Log: log})
	if cause := context.Cause(ctx); err == nil && cause != nil && !errors.Is(cause, context.Canceled) {
		err = agents.Input(fmt.Errorf("the NATS server: %w", cause))
	}
	bus.close()
	return err
}

// child is an agent whose coordinator is its parent.
func (c *agentCmd) child(token string) error {
	signal.Ignore(os.Interrupt) // of the terminal: the coordinator decides
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	bus, err := dial(c.Server, token, "spillway agent "+c.Name)
	if err != nil {
		return err
	}
	defer bus.close()
	return agents.Serve(ctx, bus, agents.AgentConfig{Name: c.Name, Once: true})
}

type coordinateCmd struct{}

func (coordinateCmd) Run() error {
	signal.Ignore(os.Interrupt) // of the terminal: the parent ends standard input
	if code := agents.Obey(os.Stdin, os.Stdout, coordinate); code != 0 {
		os.Exit(code)
	}
	return nil
}

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	parsed, err := newParser(&commandLine{}).Parse(args)
	code := 2
	if err == nil {
		if err = parsed.Run(); err == nil {
			return 0
		}
		if !errors.Is(err, agents.ErrInput) {
			code = 1
		}
	}
	fmt.Fprintln(os.Stderr, "spillway:", strings.Join(strings.Fields(err.Error()), " "))
	return code
}

func newParser(cli *commandLine) *kong.Kong {
	parser := kong.Must(cli, kong.Name("spillway"), kong.Description("Load from several processes."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 110}))
	environment(parser.Model.Node, "SPILLWAY")
	return parser
}

// environment gives every flag a variable of its command's name, as the command spillway does.
func environment(node *kong.Node, prefix string) {
	for _, f := range node.Flags {
		if f.Name != "help" {
			f.Envs = []string{prefix + "_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))}
			f.Tag.Envs = f.Envs
		}
	}
	for _, child := range node.Children {
		environment(child, prefix+"_"+strings.ToUpper(child.Name))
	}
}
