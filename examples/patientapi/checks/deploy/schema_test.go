package deploy

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
)

//go:generate sh -c "go run ./internal/prune \"$(go mod download -json k8s.io/kubernetes@v1.36.0 | sed -n 's/.*\"Dir\": \"\\(.*\\)\".*/\\1/p')\" >schema/kubernetes.json"

//go:embed schema/kubernetes.json
var published []byte

// check returns what Kubernetes would not take of an object.
func check(t *testing.T, object []byte) error {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(published))
	require.NoError(t, err)
	var of struct{ APIVersion, Kind string }
	require.NoError(t, json.Unmarshal(object, &of))
	name, ok := doc.(map[string]any)["kinds"].(map[string]any)[of.APIVersion+" "+of.Kind].(string)
	if !ok {
		t.Fatalf("schema/kubernetes.json has no %s %s: add it to internal/prune", of.APIVersion, of.Kind)
	}
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("kubernetes.json", doc))
	schema, err := c.Compile("kubernetes.json#/components/schemas/" + name)
	require.NoError(t, err)
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(object))
	require.NoError(t, err)
	return schema.Validate(value)
}

func TestEveryObjectIsOneThatKubernetesTakes(t *testing.T) {
	for _, folder := range []string{manifests + "/overlays/dev", manifests + "/overlays/production", verifyFolder} {
		for kind, object := range renderFolder(t, folder) {
			if err := check(t, object); err != nil {
				t.Errorf("%s: %s: %v", folder, kind, err)
			}
		}
	}
}

// The checker finds what people do wrong.
func TestPlantedFaultsAreFound(t *testing.T) {
	deployment := render(t, "production")["Deployment"]
	for name, change := range map[string][2]string{
		"a misspelt member":   {`"readinessProbe"`, `"readynessProbe"`},
		"a member too deep":   {`"periodSeconds":10`, `"httpGet2":{},"periodSeconds":10`},
		"a text for a number": {`"terminationGracePeriodSeconds":45`, `"terminationGracePeriodSeconds":"45"`},
		"a number for a text": {`"runAsUser":65532`, `"runAsUser":true`},
		"no name":             {`"name":"GOMEMLIMIT",`, ``},
	} {
		broken := bytes.Replace(deployment, []byte(change[0]), []byte(change[1]), 1)
		if bytes.Equal(broken, deployment) {
			t.Errorf("%s: the deployment has no %s", name, change[0])
		} else if err := check(t, broken); err == nil || !strings.Contains(err.Error(), "/spec") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
