package deploy

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// job is as much of one as the tests look at.
type job struct {
	Spec struct {
		CompletionMode           string
		Completions, Parallelism int
		BackoffLimit             *int
		Template                 struct {
			Spec struct {
				RestartPolicy string
				pod           `json:",inline"`
			}
		}
	}
}

const loadFolder = "../../../../deploy/agents"

func TestTheAgentsAreObjectsThatKubernetesTakes(t *testing.T) {
	for kind, object := range renderFolder(t, loadFolder) {
		if err := check(t, object); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// All agents are there at the same time, and one that failed is not replaced: it would
// be the share of a load that is invalid.
func TestEveryAgentRunsOnceBesideTheOthers(t *testing.T) {
	var j job
	renderFolder(t, loadFolder).into(t, "Job", &j)
	if s := j.Spec; s.CompletionMode != "Indexed" || s.Completions < 2 || s.Parallelism != s.Completions || s.BackoffLimit == nil || *s.BackoffLimit != 0 || s.Template.Spec.RestartPolicy != "Never" {
		t.Errorf("%+v", s)
	}
	p := j.Spec.Template.Spec.pod
	if !p.SecurityContext.RunAsNonRoot || p.SecurityContext.RunAsUser == 0 || p.AutomountServiceAccountToken == nil || *p.AutomountServiceAccountToken || len(p.Containers) != 1 {
		t.Fatalf("%+v", p)
	}
	c := p.Containers[0]
	if c.Resources.Requests["cpu"] != c.Resources.Limits["cpu"] {
		t.Errorf("an agent may be throttled: %+v", c.Resources)
	}
	if s := c.SecurityContext; s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || !s.ReadOnlyRootFilesystem || len(s.Capabilities.Drop) != 1 {
		t.Errorf("%+v", s)
	}
	if main, ok := strings.CutPrefix(c.Image, "ko://github.com/spillway-go/spillway/"); !ok {
		t.Errorf("image %s", c.Image)
	} else if _, err := os.Stat("../../../../" + main + "/main.go"); err != nil {
		t.Error(err)
	}
}

// The chart drops a value in silence that it does not know. It is not here to be rendered, so
// these are the values of chart 1.x that we use, as its README and its template
// files/stateful-set/nats-container.yaml name them (github.com/nats-io/k8s); where it
// merges, what we say is checked as what it becomes.
func TestTheServersValuesAreThoseOfTheChart(t *testing.T) {
	text, err := os.ReadFile(loadFolder + "/nats-values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values struct {
		Config struct {
			Merge map[string]any `json:"merge"` // into nats.conf; lab/contestants/agents has a server read it
		} `json:"config"`
		Container struct {
			Env   map[string]map[string]any `json:"env"` // by name
			Merge map[string]any            `json:"merge"`
		} `json:"container"`
		NATSBox struct {
			Enabled bool `json:"enabled"`
		} `json:"natsBox"`
	}
	if err := yaml.UnmarshalStrict(text, &values); err != nil {
		t.Fatal(err)
	}
	container := maps.Clone(values.Container.Merge)
	container["name"] = "nats"
	var env []map[string]any
	for name, v := range values.Container.Env {
		v["name"] = name
		env = append(env, v)
	}
	container["env"] = env
	object, err := json.Marshal(container)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkAs(t, "io.k8s.api.core.v1.Container", object); err != nil {
		t.Error(err)
	}
	broken := bytes.Replace(object, []byte("resources"), []byte("resource"), 1)
	if checkAs(t, "io.k8s.api.core.v1.Container", broken) == nil {
		t.Errorf("taken: %s", broken)
	}
}

// Both ends have their token from one secret.
func TestTheAgentsAndTheirServerShareAToken(t *testing.T) {
	text, err := os.ReadFile(loadFolder + "/nats-values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values struct {
		Container struct {
			Env map[string]struct {
				ValueFrom struct{ SecretKeyRef struct{ Name, Key string } }
			}
		}
	}
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	var j job
	renderFolder(t, loadFolder).into(t, "Job", &j)
	server := values.Container.Env["NATS_TOKEN"].ValueFrom.SecretKeyRef
	for _, e := range j.Spec.Template.Spec.Containers[0].Env {
		if e.Name == "SPILLWAY_NATS_TOKEN" && server.Name != "" && e.Value == "" && e.ValueFrom.SecretKeyRef == server {
			return
		}
	}
	t.Errorf("the server's is %+v, no agent has it", server)
}
