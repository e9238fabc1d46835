// Command patientapi serves the patient API. See its --help.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
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
	Serve   app.Command `cmd:"" default:"withargs" help:"Serve the API; what happens without a command, too."`
	OpenAPI struct{}    `cmd:"" name:"openapi" help:"Write the OpenAPI document of the API to standard output."`
}

// run returns the exit code: 0 served and stopped, 1 failed, 2 bad input.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var cmd commands
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
		fmt.Fprintf(stderr, "patientapi: %v (see patientapi --help)\n", err)
		return 2
	}
	if asked.Command() == "openapi" {
		err = writeDocument(stdout)
	} else {
		err = cmd.Serve.Run(ctx, stdout, stderr)
	}
	if err != nil {
		fmt.Fprintln(stderr, "patientapi:", err)
		if errors.Is(err, app.ErrUsage) {
			return 2
		}
		return 1
	}
	return 0
}

func writeDocument(w io.Writer) error {
	doc, err := httpapi.Document()
	if err != nil {
		return err
	}
	_, err = w.Write(doc)
	return err
}
