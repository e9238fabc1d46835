package load

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
)

// The contestants that the lab has itself, and those that know no part of a second.
const (
	spillway = "spillway" // the command, spillway load
	netHTTP  = "net/http" // the same loop by the client of the standard library
	wrk      = "wrk"
	k6       = "k6"
)

// loop is what every contestant sends.
type loop struct {
	URL         string
	Connections int
	Time        time.Duration
}

// tool is a load generator that others made.
type tool struct {
	name, install string
	command       func(loop) (args []string, stdin string)
}

var tools = []tool{
	{wrk, "apt install wrk", func(l loop) ([]string, string) {
		return []string{"-t", strconv.Itoa(min(runtime.GOMAXPROCS(0), l.Connections)), "-c", l.connections(), "-d", fmt.Sprintf("%.0fs", l.Time.Seconds()), l.URL}, ""
	}},
	{"hey", "go install github.com/rakyll/hey@latest", func(l loop) ([]string, string) {
		return []string{"-c", l.connections(), "-z", l.Time.String(), l.URL}, ""
	}},
	{"vegeta", "go install github.com/tsenart/vegeta/v12@latest", func(l loop) ([]string, string) { // a rate of 0 makes it a closed loop
		return []string{"attack", "-rate", "0", "-workers", l.connections(), "-max-workers", l.connections(), "-connections", l.connections(),
			"-duration", l.Time.String(), "-output", os.DevNull}, "GET " + l.URL + "\n"
	}},
	{k6, "go install go.k6.io/k6@latest", func(l loop) ([]string, string) {
		return []string{"run", "--quiet", "--no-usage-report", "--vus", l.connections(), "--duration", l.Time.String(), "--discard-response-bodies", "-"},
			fmt.Sprintf("import http from 'k6/http'; export default function () { http.get(%q) }\n", l.URL)
	}},
	{"oha", "cargo install oha", func(l loop) ([]string, string) {
		return []string{"--no-tui", "-c", l.connections(), "-z", l.Time.String(), l.URL}, ""
	}},
}

func names() []string {
	out := []string{spillway, netHTTP}
	for _, t := range tools {
		out = append(out, t.name)
	}
	return out
}

func (l loop) connections() string { return strconv.Itoa(l.Connections) }

// send runs the contestant in a process of its own.
func (l loop) send(ctx context.Context, name string) (used contestant.Used, err error) {
	switch name {
	case spillway:
		self, err := os.Executable()
		if err != nil {
			return used, err
		}
		return contestant.Tool{Path: self, Args: l.ours(), Env: plainEnvironment()}.Run(ctx)
	case netHTTP:
		exit, err := contestant.Run(ctx, contestant.Spec{Role: roleNetHTTP, Input: l}, &used.CPU)
		used.PeakRSS = exit.PeakRSS
		return used, err
	}
	t := tools[slices.IndexFunc(tools, func(t tool) bool { return t.name == name })]
	path, err := exec.LookPath(t.name)
	if err != nil {
		return used, fmt.Errorf("%w: %s", err, t.install)
	}
	args, stdin := t.command(l)
	return contestant.Tool{Path: path, Args: args, Stdin: stdin}.Run(ctx)
}

// ours are the arguments of this command.
func (l loop) ours() []string {
	return []string{"load", "--clients", l.connections(), "--duration", l.Time.String(), "--json", l.URL}
}

// plainEnvironment is the environment without flags of this command, of which some
// contradict others.
func plainEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "SPILLWAY_LOAD_") })
}
