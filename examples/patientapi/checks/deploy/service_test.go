package deploy

import (
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/spillway-go/spillway/examples/patientapi/app"
	auditpostgres "github.com/spillway-go/spillway/examples/patientapi/audit/postgres"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
)

// parse gives the service's command line the environment of an overlay. A name that it
// does not know is an error, other than those of the Go runtime and OpenTelemetry.
func parse(t *testing.T, overlay string) app.Command {
	t.Helper()
	made := render(t, overlay)
	_, c := made.served(t)
	env := maps.Clone(made.settings(t))
	for _, e := range c.Env {
		env[e.Name] = e.Value
	}
	var cmd app.Command
	parser, err := kong.New(&cmd)
	require.NoError(t, err)
	var known []string
	for _, flags := range parser.Model.AllFlags(false) {
		for _, f := range flags {
			known = append(known, f.Envs...)
		}
	}
	for name, value := range env {
		if name != "GOMEMLIMIT" && !strings.HasPrefix(name, "OTEL_") && !slices.Contains(known, name) {
			t.Errorf("%s: the service knows no %s", overlay, name)
		}
		if value != "" {
			t.Setenv(name, value)
		}
	}
	if _, err := parser.Parse(nil); err != nil {
		t.Errorf("%s: %v", overlay, err)
	}
	return cmd
}

func TestTheServiceKnowsItsSettings(t *testing.T) {
	for _, overlay := range overlays {
		t.Run(overlay, func(t *testing.T) {
			cmd := parse(t, overlay)
			if cmd.Faults.MinLatency+cmd.Faults.MaxLatency != 0 || cmd.Faults.ErrorRate != 0 {
				t.Errorf("latency or errors are injected: %+v", cmd.Faults)
			}
			if cmd.Pattern.Name != patterns.Adaptive || !cmd.JSON {
				t.Errorf("pattern %s, JSON %v", cmd.Pattern.Name, cmd.JSON)
			}
		})
	}
}

// What is told to stop has the time for it: kubelet kills later than the service ends.
func TestAServiceThatStopsIsNotKilled(t *testing.T) {
	const flush = 3 * time.Second // of spans
	for _, overlay := range overlays {
		t.Run(overlay, func(t *testing.T) {
			d, _ := render(t, overlay).served(t)
			stop := parse(t, overlay).Shutdown
			grace := time.Duration(d.Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second
			if need := stop.DrainDelay + stop.Timeout + flush; grace < need+5*time.Second {
				t.Errorf("killed after %v, while stopping may take %v", grace, need)
			}
			// Endpoints follow readiness, or the deletion, within seconds.
			if stop.DrainDelay < 5*time.Second {
				t.Errorf("drains %v after it is not ready: load balancers need longer", stop.DrainDelay)
			}
		})
	}
}

func TestPortsAreThoseOfTheService(t *testing.T) {
	for _, overlay := range overlays {
		t.Run(overlay, func(t *testing.T) {
			made := render(t, overlay)
			_, c := made.served(t)
			ports, cmd := map[string]int{}, parse(t, overlay)
			for _, p := range c.Ports {
				ports[p.Name] = p.ContainerPort
			}
			for name, addr := range map[string]string{"http": cmd.Listen.Addr, "admin": cmd.Admin.Addr} {
				if _, port, err := net.SplitHostPort(addr); err != nil || port != strconv.Itoa(ports[name]) {
					t.Errorf("%s: the service listens on %s, the container on %d", name, addr, ports[name])
				}
			}
			if !cmd.Admin.Public {
				t.Error("probes cannot reach the admin port")
			}
			for name, probe := range map[string]struct {
				probe
				path string
			}{"startup": {c.StartupProbe, "/livez"}, "liveness": {c.LivenessProbe, "/livez"}, "readiness": {c.ReadinessProbe, "/readyz"}} {
				if probe.HTTPGet.Path != probe.path || probe.HTTPGet.Port != "admin" {
					t.Errorf("the %s probe asks %+v", name, probe.HTTPGet)
				}
			}
			var service struct {
				Spec struct{ Ports []struct{ TargetPort string } }
			}
			made.into(t, "Service", &service)
			if len(service.Spec.Ports) != 1 || service.Spec.Ports[0].TargetPort != "http" {
				t.Errorf("clients are sent to %+v", service.Spec.Ports)
			}
		})
	}
}

func TestSelectorsFindThePods(t *testing.T) {
	for _, overlay := range overlays {
		made := render(t, overlay)
		d, _ := made.served(t)
		labels := d.Spec.Template.Metadata.Labels
		found := map[string]map[string]string{"Deployment": d.Spec.Selector.MatchLabels}
		var service struct {
			Spec struct{ Selector map[string]string }
		}
		made.into(t, "Service", &service)
		found["Service"] = service.Spec.Selector
		var policy struct {
			Spec struct{ PodSelector selector }
		}
		made.into(t, "NetworkPolicy", &policy)
		found["NetworkPolicy"] = policy.Spec.PodSelector.MatchLabels
		if made["PodDisruptionBudget"] != nil {
			var budget struct{ Spec struct{ Selector selector } }
			made.into(t, "PodDisruptionBudget", &budget)
			found["PodDisruptionBudget"] = budget.Spec.Selector.MatchLabels
		}
		for kind, want := range found {
			if len(want) == 0 {
				t.Errorf("%s: %s selects everything", overlay, kind)
			}
			for key, value := range want {
				if labels[key] != value {
					t.Errorf("%s: %s selects %s=%s, pods have %v", overlay, kind, key, value, labels)
				}
			}
		}
	}
}

func TestTheContainerMayDoNothingItNeedNot(t *testing.T) {
	for _, overlay := range overlays {
		d, c := render(t, overlay).served(t)
		p, s := d.Spec.Template.Spec, c.SecurityContext
		if !p.SecurityContext.RunAsNonRoot || p.SecurityContext.RunAsUser == 0 || p.SecurityContext.SeccompProfile.Type != "RuntimeDefault" ||
			p.AutomountServiceAccountToken == nil || *p.AutomountServiceAccountToken {
			t.Errorf("%s: pod %+v", overlay, p)
		}
		if s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || !s.ReadOnlyRootFilesystem || !slices.Equal(s.Capabilities.Drop, []string{"ALL"}) {
			t.Errorf("%s: container %+v", overlay, s)
		}
	}
}

// The collector aims at the request, so that has to be a little less than the limit.
func TestTheCollectorKnowsTheMemory(t *testing.T) {
	for _, overlay := range overlays {
		_, c := render(t, overlay).served(t)
		i := slices.IndexFunc(c.Env, func(e variable) bool { return e.Name == "GOMEMLIMIT" })
		if i < 0 || c.Env[i].ValueFrom.ResourceFieldRef.Resource != "requests.memory" {
			t.Fatalf("%s: GOMEMLIMIT is not requests.memory: %+v", overlay, c.Env)
		}
		mib := func(text string) float64 {
			n, err := strconv.ParseFloat(strings.TrimSuffix(text, "Mi"), 64)
			require.NoError(t, err)
			return n
		}
		if share := mib(c.Resources.Requests["memory"]) / mib(c.Resources.Limits["memory"]); share < 0.85 || share > 0.95 {
			t.Errorf("%s: the request is %.2f of the limit, want 0.9", overlay, share)
		}
	}
}

// What is secret comes from a secret. A URL with credentials anywhere else would be in
// the repository.
func TestSecretsAreReferredToAndNotThere(t *testing.T) {
	for _, overlay := range overlays {
		for kind, object := range render(t, overlay) {
			if regexp.MustCompile(`://[^/"]*@`).Match(object) {
				t.Errorf("%s: %s has credentials", overlay, kind)
			}
		}
	}
	_, c := render(t, "production").served(t)
	for _, e := range c.Env {
		if e.Name == "SPILLWAY_STORE" && e.ValueFrom.SecretKeyRef.Name != "" && e.ValueFrom.SecretKeyRef.Key != "" {
			return
		}
	}
	t.Error("the database's URL is not from a secret")
}

// As many replicas as there may be, with one more during an update, do not ask the
// database for more connections than a role of the service has.
func TestTheDatabaseBearsTheReplicas(t *testing.T) {
	const role = 100
	made := render(t, "production")
	d, _ := made.served(t)
	var scaler struct {
		Spec struct {
			ScaleTargetRef struct{ Kind, Name string }
			MaxReplicas    int
			Metrics        []struct {
				Pods struct {
					Metric struct {
						Name     string
						Selector selector
					}
				}
			}
		}
	}
	made.into(t, "HorizontalPodAutoscaler", &scaler)
	s := scaler.Spec
	if s.ScaleTargetRef.Kind != "Deployment" || s.ScaleTargetRef.Name != d.Metadata.Name {
		t.Errorf("scales %+v", s.ScaleTargetRef)
	}
	if len(s.Metrics) != 1 || s.Metrics[0].Pods.Metric.Name != "spillway_demand" || s.Metrics[0].Pods.Metric.Selector.MatchLabels["limiter"] != patterns.Adaptive {
		t.Errorf("scales by %+v", s.Metrics)
	}
	each, err := strconv.Atoi(made.settings(t)["SPILLWAY_CONNECTIONS"])
	require.NoError(t, err)
	if most := (s.MaxReplicas + d.Spec.Strategy.RollingUpdate.MaxSurge) * (each + auditpostgres.Connections); most > role-5 {
		t.Errorf("%d connections, and the role has %d", most, role)
	}
}

// What one replica has signed or sealed the others can open.
func TestReplicasShareTheirKeys(t *testing.T) {
	settings := render(t, "production").settings(t)
	for _, name := range []string{"SPILLWAY_JWKS", "SPILLWAY_AUDIT_KEY_FILE", "SPILLWAY_FHIR_PAGE_KEY_FILE"} {
		if settings[name] == "" {
			t.Errorf("each replica has its own: there is no %s", name)
		}
	}
}

// A file that a setting names is in a volume that the container has.
func TestFilesOfSettingsAreMounted(t *testing.T) {
	for _, overlay := range overlays {
		made := render(t, overlay)
		_, c := made.served(t)
		for name, value := range made.settings(t) {
			mounted := func(m struct{ MountPath string }) bool { return strings.HasPrefix(value, m.MountPath+"/") }
			if strings.HasPrefix(value, "/") && !slices.ContainsFunc(c.VolumeMounts, mounted) {
				t.Errorf("%s: nothing is mounted for %s=%s", overlay, name, value)
			}
		}
	}
}
