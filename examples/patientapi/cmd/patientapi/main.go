// Command patientapi serves the patient API. See its --help.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/spillway-go/spillway/examples/patientapi/app"
	"github.com/spillway-go/spillway/examples/patientapi/httpapi"
)

func main() {
	// The first signal asks; after it the default is restored, so that the
	// second one insists.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// commands are what the command line may ask for. Without one of them it serves.
type commands struct {
	Serve   app.Command      `cmd:"" default:"withargs" help:"Serve the API; what happens without a command, too."`
	Token   app.TokenCommand `cmd:"" help:"Write a token to standard output, made with the development keys."`
	Audit   app.AuditCommand `cmd:"" help:"Verify the records of accesses."`
	OpenAPI struct{}         `cmd:"" name:"openapi" help:"Write the OpenAPI document of the API to standard output."`
}

// run returns the exit code: 0 served and stopped, 1 failed, 2 bad input, 3 a key is missing.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var cmd commands
	cmd.Serve.Engine = natsEngine{}
	exit := -1
	parser, err := kong.New(&cmd, kong.Name("patientapi"),
		kong.Description("Serve patients over HTTP under one of five concurrency patterns. All people are invented."),
		kong.Writers(stdout, stderr), kong.Exit(func(code int) { exit = code }))
	if err != nil {
		fmt.Fprintln(stderr, "patientapi:", err)
		return 1
	}
	asked, err := parser.Parse(args)
	switch {
	case exit >= 0: // --help has been printed
		return exit
	case err != nil:
		fmt.Fprintf(stderr, "patientapi: %s (see patientapi --help)\n", discreetly(err))
		return 2
	}
	switch asked.Command() {
	case "openapi":
		err = writeDocument(stdout)
	case "token":
		err = cmd.Token.Run(stdout)
	case "audit verify":
		err = cmd.Audit.Verify.Run(ctx, stdout, stderr)
	default:
		err = cmd.Serve.Run(ctx, stdout, stderr)
	}
	if err != nil {
		fmt.Fprintln(stderr, "patientapi:", discreetly(err))
		switch {
		case errors.Is(err, app.ErrUsage):
			return 2
		case errors.Is(err, app.ErrKeyNeeded):
			return 3
		}
		return 1
	}
	return 0
}

// login is what may hold a password in an address.
var login = regexp.MustCompile(`(://)\S+@|(password=)[^&\s"]*`)

// discreetly is the text of err without what an address has before its host: a value that
// is repeated because it makes no sense where it stands may be one for another flag, and
// what is said here goes into logs. The addresses of examples stay.
func discreetly(err error) string {
	return login.ReplaceAllStringFunc(err.Error(), func(found string) string {
		if found == "://user@" || found == "://[user:password@" {
			return found
		}
		return login.ReplaceAllString(found, "$1$2[redacted]")
	})
}

func writeDocument(w io.Writer) error {
	doc, err := httpapi.Document()
	if err != nil {
		return err
	}
	var indented bytes.Buffer // for its readers; it is served without
	if err := json.Indent(&indented, doc, "", "  "); err != nil {
		return err
	}
	_, err = indented.WriteTo(w)
	return err
}
