package deploy

import (
	"os"
	"slices"
	"testing"

	"github.com/alecthomas/kong"
	"sigs.k8s.io/yaml"

	"github.com/spillway-go/spillway/examples/patientapi/app"
)

const verifyFolder = manifests + "/verify"

func TestTheVerificationIsObjectsThatKubernetesTakes(t *testing.T) {
	for kind, object := range renderFolder(t, verifyFolder) {
		if err := check(t, object); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// The job runs a command that exists, with the key of the service, and may do nothing it
// need not.
func TestTheVerificationReadsTheRecordsOfTheService(t *testing.T) {
	made := renderFolder(t, verifyFolder)
	var j job
	made.into(t, "Job", &j)
	p := j.Spec.Template.Spec.pod
	if len(p.Containers) != 1 || j.Spec.BackoffLimit == nil || *j.Spec.BackoffLimit != 0 || j.Spec.Template.Spec.RestartPolicy != "Never" {
		t.Fatalf("%+v", j.Spec)
	}
	c, service := p.Containers[0], render(t, "production")
	_, served := service.served(t)
	if c.Image != served.Image {
		t.Errorf("the image is %s, that of the service %s", c.Image, served.Image)
	}
	var commands struct {
		Audit app.AuditCommand `cmd:""`
	}
	parser, err := kong.New(&commands)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parser.Parse(c.Args)
	if err != nil || parsed.Command() != "audit verify" {
		t.Fatalf("%q: %v", c.Args, err)
	}
	if key := service.settings(t)["SPILLWAY_AUDIT_KEY_FILE"]; commands.Audit.Verify.KeyFile != key {
		t.Errorf("the key is %s, that of the service %s", commands.Audit.Verify.KeyFile, key)
	}
	store := func(e variable) bool { return e.Name == "SPILLWAY_STORE" && e.ValueFrom.SecretKeyRef.Name != "" }
	mine, theirs := slices.IndexFunc(c.Env, store), slices.IndexFunc(served.Env, store)
	if mine < 0 || c.Env[mine].ValueFrom != served.Env[theirs].ValueFrom {
		t.Errorf("the records are in %+v", c.Env)
	}
	if s := c.SecurityContext; !p.SecurityContext.RunAsNonRoot || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || !s.ReadOnlyRootFilesystem || !slices.Equal(s.Capabilities.Drop, []string{"ALL"}) {
		t.Errorf("%+v %+v", p.SecurityContext, s)
	}
}

// Metrics and labels of the alerts are checked beside those of the dashboard, in package
// app.
func TestEveryAlertSaysWhatItMeans(t *testing.T) {
	text, err := os.ReadFile(manifests + "/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var alerts struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr         string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(text, &alerts); err != nil || len(alerts.Groups) != 1 || len(alerts.Groups[0].Rules) == 0 {
		t.Fatal(err, alerts)
	}
	for _, r := range alerts.Groups[0].Rules {
		if r.Alert == "" || r.Expr == "" || !slices.Contains([]string{"page", "warning", "info"}, r.Labels["severity"]) || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%+v", r)
		}
	}
}
