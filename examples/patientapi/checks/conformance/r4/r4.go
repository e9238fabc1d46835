// Package r4 finds out whether a document is a resource of FHIR R4, by the JSON schema
// that HL7 publishes. Its tests put every answer of the service to it.
package r4

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

//go:embed testdata/fhir.schema.json.gz
var compressed []byte

// published is the checksum of the schema: see testdata/README.md.
const published = "15b9548af6412c44faaa411456e0652542de286fd1c58ef882b09bdc8947909d"

const location = "fhir.schema.json"

// Schema has the schemas of all resources, each compiled when it is first needed. It is
// safe for concurrent use.
type Schema struct {
	mu       sync.Mutex
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema // by the type of the resource
}

// New reads the published schema.
func New() (*Schema, error) {
	r, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != published {
		return nil, fmt.Errorf("r4: the schema is not the published one: its checksum is %x", sum)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if err := correct(document); err != nil {
		return nil, err
	}
	s := &Schema{compiler: jsonschema.NewCompiler(), compiled: map[string]*jsonschema.Schema{}}
	return s, s.compiler.AddResource(location, document)
}

// correct makes the schema, which is that of 4.0.0, that of 4.0.1: a correction of R4
// that adds, of all that JSON shows, its own number.
func correct(document any) error {
	members := document.(map[string]any)
	for _, name := range []string{"definitions", "CapabilityStatement", "properties", "fhirVersion"} {
		inner, ok := members[name].(map[string]any)
		if !ok {
			return fmt.Errorf("r4: the schema has no %s where it is looked for", name)
		}
		members = inner
	}
	versions, _ := members["enum"].([]any)
	members["enum"] = append(versions, "4.0.1")
	return nil
}

// Check reports what is wrong with a resource.
func (s *Schema) Check(resource []byte) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(resource))
	if err != nil {
		return err
	}
	return s.check(v)
}

func (s *Schema) check(v any) error {
	members, _ := v.(map[string]any)
	kind, ok := members["resourceType"].(string)
	if !ok {
		return errors.New("r4: there is no resourceType")
	}
	schema, err := s.of(kind)
	if err != nil {
		return err
	}
	if kind == "Bundle" {
		if v, err = s.checkEntries(members); err != nil {
			return err
		}
	}
	return schema.Validate(v)
}

// checkEntries reports what is wrong with the resources of a bundle, each by the schema of
// its own type. The schema of Bundle would try 146 on each. It returns the bundle
// without them.
func (s *Schema) checkEntries(bundle map[string]any) (frame map[string]any, err error) {
	frame = maps.Clone(bundle)
	entries, ok := frame["entry"].([]any)
	if !ok {
		return frame, nil
	}
	frames := make([]any, len(entries))
	for i, e := range entries {
		entry, ok := e.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("r4: entry %d is no object", i)
		}
		if err := s.check(entry["resource"]); err != nil {
			return nil, fmt.Errorf("r4: entry %d: %w", i, err)
		}
		entry = maps.Clone(entry)
		delete(entry, "resource")
		frames[i] = entry
	}
	frame["entry"] = frames
	return frame, nil
}

func (s *Schema) of(kind string) (*jsonschema.Schema, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.compiled[kind]; known != nil {
		return known, nil
	}
	schema, err := s.compiler.Compile(location + "#/definitions/" + kind)
	if err != nil {
		return nil, fmt.Errorf("r4: there is no %q in FHIR: %w", kind, err)
	}
	s.compiled[kind] = schema
	return schema, nil
}
