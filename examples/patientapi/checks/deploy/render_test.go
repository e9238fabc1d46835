package deploy

import (
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
)

// manifests is the folder that is checked.
const manifests = "../../deploy"

var overlays = []string{"dev", "production"}

// rendered is what an overlay makes, by kind. Each kind is there once.
type rendered map[string][]byte

func render(t *testing.T, overlay string) rendered {
	t.Helper()
	return renderFolder(t, manifests+"/overlays/"+overlay)
}

func renderFolder(t *testing.T, folder string) rendered {
	t.Helper()
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	require.NoError(t, err)
	all := rendered{}
	for _, r := range made.Resources() {
		text, err := r.MarshalJSON()
		require.NoError(t, err)
		if all[r.GetKind()] != nil {
			t.Fatalf("two objects of kind %s", r.GetKind())
		}
		all[r.GetKind()] = text
	}
	return all
}

// into decodes the object of that kind.
func (r rendered) into(t *testing.T, kind string, v any) {
	t.Helper()
	if r[kind] == nil {
		t.Fatalf("no %s", kind)
	}
	require.NoError(t, json.Unmarshal(r[kind], v))
}

// deployment is as much of one as the tests look at.
type deployment struct {
	Metadata struct{ Name string }
	Spec     struct {
		Selector selector
		Strategy struct {
			RollingUpdate struct{ MaxSurge int }
		}
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     pod
		}
	}
}

type selector struct{ MatchLabels map[string]string }

type pod struct {
	AutomountServiceAccountToken  *bool
	TerminationGracePeriodSeconds int
	SecurityContext               struct {
		RunAsNonRoot   bool
		RunAsUser      int
		SeccompProfile struct{ Type string }
	}
	Containers []container
}

type container struct {
	Image string
	Args  []string
	Ports []struct {
		Name          string
		ContainerPort int
	}
	EnvFrom                                     []struct{ ConfigMapRef struct{ Name string } }
	Env                                         []variable
	Resources                                   struct{ Requests, Limits map[string]string }
	StartupProbe, LivenessProbe, ReadinessProbe probe
	SecurityContext                             struct {
		AllowPrivilegeEscalation *bool
		ReadOnlyRootFilesystem   bool
		Capabilities             struct{ Drop []string }
	}
	VolumeMounts []struct{ MountPath string }
}

type probe struct{ HTTPGet struct{ Path, Port string } }

type variable struct {
	Name, Value string
	ValueFrom   struct {
		SecretKeyRef     struct{ Name, Key string }
		ResourceFieldRef struct{ Resource string }
	}
}

// served returns the deployment and its container.
func (r rendered) served(t *testing.T) (deployment, container) {
	t.Helper()
	var d deployment
	r.into(t, "Deployment", &d)
	if len(d.Spec.Template.Spec.Containers) != 1 {
		t.Fatalf("%d containers, want 1", len(d.Spec.Template.Spec.Containers))
	}
	return d, d.Spec.Template.Spec.Containers[0]
}

// settings returns the environment that the configuration gives, without what secrets
// and the downward API do.
func (r rendered) settings(t *testing.T) map[string]string {
	t.Helper()
	_, c := r.served(t)
	var m struct {
		Metadata struct{ Name string }
		Data     map[string]string
	}
	r.into(t, "ConfigMap", &m)
	if len(c.EnvFrom) != 1 || c.EnvFrom[0].ConfigMapRef.Name != m.Metadata.Name || !strings.HasPrefix(m.Metadata.Name, "patientapi-") {
		t.Fatalf("the environment is from %v, the configuration is %s", c.EnvFrom, m.Metadata.Name)
	}
	return m.Data
}
