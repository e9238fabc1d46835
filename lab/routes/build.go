package routes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// JSON of a build of the contestants.
const (
	StdJSON = "encoding/json"
	JSONv2  = "json v2"
)

const alone = "github.com/spillway-go/spillway/lab/routes/alone"

// otherBuild is the JSON of the other build, and the environment of the go command for
// it.
func otherBuild() (name, experiment string) {
	if thisBuild == StdJSON {
		return JSONv2, "jsonv2"
	}
	return StdJSON, "nojsonv2"
}

// howToBuild says how to get the figures of that build from this source alone.
func howToBuild(build string) string {
	experiment := "jsonv2"
	if build == StdJSON {
		experiment = "nojsonv2"
	}
	return "in a clone, GOEXPERIMENT=" + experiment + " go run ./lab/cmd/spillway lab R"
}

// canBuild reports whether the go command and the source are there.
func canBuild(ctx context.Context) error {
	command := exec.CommandContext(ctx, "go", "list", "-find", alone)
	command.Env = append(os.Environ(), "GOPROXY=off")
	if _, err := command.Output(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return errors.New("there is no go command")
		}
		return errors.New("the source is not here")
	}
	return nil
}

// build builds the contestants for the other JSON and returns the program, which is
// kept in the user's cache folder.
func build(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no folder for the second build: %w", err)
	}
	_, experiment := otherBuild()
	program := filepath.Join(cache, "spillway", "routes-"+experiment)
	command := exec.CommandContext(ctx, "go", "build", "-o", program, alone)
	command.Env = append(os.Environ(), "GOEXPERIMENT="+experiment)
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("the contestants cannot be built with GOEXPERIMENT=%s: %w: %s", experiment, err, strings.TrimSpace(said.String()))
	}
	return program, nil
}
