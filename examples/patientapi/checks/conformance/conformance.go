// Package conformance holds the OpenAPI document of the patient API and a client
// generated from it. Its tests find out whether document, client and service say
// the same: a validator reads the document, the client is driven with generated
// inputs against the running service, and every error that is documented is
// brought about.
//
// Package conformance and package deploy are in the module examples/patientapi/checks, so
// that the service does not depend on generators and validators.
package conformance

import _ "embed"

//go:generate sh -c "go run ../../cmd/patientapi openapi >openapi.json"
//go:generate env GOWORK=off go tool -modfile=../../../../tools/pinned/go.mod oapi-codegen -config client/config.yaml openapi.json
//go:generate sh -c "sha256sum <openapi.json >client/openapi.sha256"

// Document is the OpenAPI document that the client was generated from.
//
//go:embed openapi.json
var Document []byte

// generatedFrom is the checksum of the document that the client was generated from.
//
//go:embed client/openapi.sha256
var generatedFrom string
