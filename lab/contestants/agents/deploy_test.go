package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"gopkg.in/yaml.v3"
)

const manifests = "../../../deploy/agents/"

func readYAML(t *testing.T, name string, v any) {
	t.Helper()
	text, err := os.ReadFile(manifests + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, v); err != nil {
		t.Fatal(err)
	}
}

// What the manifest says to an agent is what an agent understands.
func TestTheJobStartsAnAgent(t *testing.T) {
	var job struct {
		Spec struct {
			Template struct {
				Spec struct {
					Containers []struct {
						Args []string
						Env  []struct{ Name, Value string }
					}
				}
			}
		}
	}
	readYAML(t, "job.yaml", &job)
	container := job.Spec.Template.Spec.Containers[0]
	var cli commandLine
	parser := newParser(&cli)
	known := map[string]bool{"GOMEMLIMIT": true, "SPILLWAY_NATS_TOKEN": true}
	for _, flags := range parser.Model.Node.Children[0].AllFlags(false) {
		for _, f := range flags {
			known[strings.Join(f.Envs, "")] = true
		}
	}
	for _, e := range container.Env {
		if !known[e.Name] {
			t.Errorf("an agent knows no %s", e.Name)
		}
		t.Setenv(e.Name, e.Value)
	}
	parsed, err := parser.Parse(container.Args)
	if err != nil {
		t.Fatal(err)
	}
	if parsed.Command() != "agent" || !cli.Agent.Once || cli.Agent.Check(nil) != nil || cli.Agent.URL != "nats://nats:4222" {
		t.Errorf("%s: %+v", parsed.Command(), cli.Agent)
	}
}

// The chart writes config.merge into the server's file, and what is between << and >>
// without quotes.
func TestTheServerOfTheChartWantsTheToken(t *testing.T) {
	var values struct {
		Config struct{ Merge map[string]any }
	}
	readYAML(t, "nats-values.yaml", &values)
	text, err := json.Marshal(values.Config.Merge)
	if err != nil {
		t.Fatal(err)
	}
	unquoted := regexp.MustCompile(`"\\u003c\\u003c (.*?) \\u003e\\u003e"`).ReplaceAll(text, []byte("$1"))
	file := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(file, unquoted, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NATS_TOKEN", "t0123abc")
	options, err := server.ProcessConfigFile(file)
	if err != nil || options.Authorization != "t0123abc" {
		t.Errorf("%s: %v, token %q", unquoted, err, options.Authorization)
	}
}
