package deploy

import (
	"slices"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/spillway-go/spillway/examples/patientapi/app"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
)

const verifyFolder = manifests + "/verify"

// job is as much of one as the test looks at.
type job struct {
	Spec struct {
		BackoffLimit *int
		Template     struct {
			Spec struct {
				RestartPolicy string
				pod           `json:",inline"`
			}
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
	require.NoError(t, err)
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
