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

const (
	spillway = "spillway" // the command, spillway load
	wrk      = "wrk"
	k6       = "k6"
)

// loop is what every contestant sends.
type loop struct {
	URL  string
	Time time.Duration
}

// tool is a load generator.
type tool struct {
	name, install string // install says how to get it; empty: it is this program
	command       func(loop) (args []string, stdin string)
}

// connections is the number of clients of the loop, each with a connection of its own.
const connections = 64

var many = strconv.Itoa(connections)

var tools = []tool{
	{spillway, "", func(l loop) ([]string, string) {
		return []string{"load", "--clients", many, "--duration", l.Time.String(), "--json", l.URL}, ""
	}},
	{wrk, "apt install wrk", func(l loop) ([]string, string) {
		return []string{"-t", strconv.Itoa(min(runtime.GOMAXPROCS(0), connections)), "-c", many, "-d", fmt.Sprintf("%.0fs", l.Time.Seconds()), l.URL}, ""
	}},
	{"hey", "go install github.com/rakyll/hey@latest", func(l loop) ([]string, string) {
		return []string{"-c", many, "-z", l.Time.String(), l.URL}, ""
	}},
	{"vegeta", "go install github.com/tsenart/vegeta/v12@latest", func(l loop) ([]string, string) { // a rate of 0 makes it a closed loop
		return []string{"attack", "-rate", "0", "-workers", many, "-max-workers", many, "-connections", many,
			"-duration", l.Time.String(), "-output", os.DevNull}, "GET " + l.URL + "\n"
	}},
	{k6, "go install go.k6.io/k6@latest", func(l loop) ([]string, string) {
		return []string{"run", "--quiet", "--no-usage-report", "--vus", many, "--duration", l.Time.String(), "--discard-response-bodies", "-"},
			fmt.Sprintf("import http from 'k6/http'; export default function () { http.get(%q) }\n", l.URL)
	}},
	{"oha", "cargo install oha", func(l loop) ([]string, string) {
		return []string{"--no-tui", "-c", many, "-z", l.Time.String(), l.URL}, ""
	}},
}

// path is where the tool is; empty: nowhere.
func (t tool) path() string {
	if t.install == "" {
		path, _ := os.Executable()
		return path
	}
	path, _ := exec.LookPath(t.name)
	return path
}

// send runs the tool in a process of its own.
func (t tool) send(ctx context.Context, l loop) (contestant.Used, error) {
	args, stdin := t.command(l)
	// Without flags of this command, of which some contradict others.
	env := slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "SPILLWAY_LOAD_") })
	return contestant.Tool{Path: t.path(), Args: args, Stdin: stdin, Env: env}.Run(ctx)
}
