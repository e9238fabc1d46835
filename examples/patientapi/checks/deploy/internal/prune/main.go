// Command prune writes a JSON schema of the Kubernetes objects that the manifests are
// made of, taken from the OpenAPI documents that Kubernetes publishes:
//
//	go mod download -json k8s.io/kubernetes@v1.36.0   # its Dir is what prune reads
//	go run ./internal/prune DIR >schema/kubernetes.json
//
// Descriptions are left out, and members that are not described are forbidden: a
// misspelt one would be dropped in silence.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// documents are the files with the objects that are wanted of each.
var documents = map[string][]string{
	"api__v1":                     {"ConfigMap", "Namespace", "PersistentVolumeClaim", "Service", "ServiceAccount"},
	"apis__apps__v1":              {"Deployment"},
	"apis__autoscaling__v2":       {"HorizontalPodAutoscaler"},
	"apis__batch__v1":             {"Job"},
	"apis__networking.k8s.io__v1": {"NetworkPolicy"},
	"apis__policy__v1":            {"PodDisruptionBudget"},
}

const refersTo = "#/components/schemas/"

type object = map[string]any

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "prune: say the folder of k8s.io/kubernetes, as go mod download -json names it")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "prune:", err)
		os.Exit(1)
	}
}

func write(dir string) error {
	kinds, kept := object{}, object{}
	for name, wanted := range documents {
		text, err := os.ReadFile(filepath.Join(dir, "api", "openapi-spec", "v3", name+"_openapi.json"))
		if err != nil {
			return err
		}
		var doc struct {
			Components struct{ Schemas map[string]object }
		}
		if err := json.Unmarshal(text, &doc); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, kind := range wanted {
			if err := keep(doc.Components.Schemas, kind, kinds, kept); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", " ")
	return out.Encode(object{
		"$comment":   "Taken from " + filepath.Base(dir) + ", Copyright The Kubernetes Authors, Apache License 2.0, by internal/prune.",
		"kinds":      kinds,
		"components": object{"schemas": kept},
	})
}

// keep adds the schema of a kind, and all that it refers to.
func keep(schemas map[string]object, kind string, kinds, kept object) error {
	for name, schema := range schemas {
		gvks, _ := schema["x-kubernetes-group-version-kind"].([]any)
		if len(gvks) != 1 || gvks[0].(object)["kind"] != kind {
			continue
		}
		gvk := gvks[0].(object)
		version := strings.TrimPrefix(fmt.Sprint(gvk["group"], "/", gvk["version"]), "/")
		kinds[version+" "+kind] = name
		reach(schemas, name, kept)
		return nil
	}
	return fmt.Errorf("no kind %s", kind)
}

func reach(schemas map[string]object, name string, kept object) {
	if _, known := kept[name]; known {
		return
	}
	schema := trim(schemas[name]).(object)
	kept[name] = schema
	var follow func(any)
	follow = func(v any) {
		switch v := v.(type) {
		case object:
			if ref, ok := v["$ref"].(string); ok {
				reach(schemas, strings.TrimPrefix(ref, refersTo), kept)
			}
			for _, inner := range v {
				follow(inner)
			}
		case []any:
			for _, inner := range v {
				follow(inner)
			}
		}
	}
	follow(schema)
}

// trim returns a schema without what only describes, and closed to other members.
func trim(v any) any {
	switch v := v.(type) {
	case object:
		out := object{}
		for key, inner := range v {
			if text, _ := inner.(string); key == "description" && text != "" || key == "default" || strings.HasPrefix(key, "x-kubernetes-") {
				continue
			}
			out[key] = trim(inner)
		}
		if _, ok := out["properties"].(object); ok && out["type"] == "object" {
			out["additionalProperties"] = false
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = trim(inner)
		}
		return out
	}
	return v
}
