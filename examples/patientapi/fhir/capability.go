package fhir

import (
	"context"

	"github.com/spillway-go/spillway/route"
)

// metadataRequest may say which part of the statement is enough: all of it is, of every mode
// and in every summary.
type metadataRequest struct {
	asked
	Mode    []string `query:"mode" validate:"max=8"`
	Summary []string `query:"_summary" validate:"max=8"`
}

type capabilityStatement struct {
	ResourceType   string         `json:"resourceType"`
	Status         string         `json:"status"`
	Date           string         `json:"date"`
	Kind           string         `json:"kind"`
	Software       software       `json:"software"`
	Implementation implementation `json:"implementation"`
	FHIRVersion    string         `json:"fhirVersion"`
	Format         []string       `json:"format"`
	Rest           []rest         `json:"rest"`
}

type software struct {
	Name string `json:"name"`
}

type implementation struct {
	Description string `json:"description"`
	URL         string `json:"url"`
}

type rest struct {
	Mode     string         `json:"mode"`
	Security security       `json:"security"`
	Resource []restResource `json:"resource"`

	Operation []restOperation `json:"operation,omitempty"`
}

type security struct {
	Service     []concept `json:"service"`
	Description string    `json:"description"`
}

type restResource struct {
	Type            string          `json:"type"`
	Interaction     []interaction   `json:"interaction"`
	Versioning      string          `json:"versioning"`
	ConditionalRead string          `json:"conditionalRead"`
	SearchParam     []searchParam   `json:"searchParam"`
	Operation       []restOperation `json:"operation,omitempty"`
}

type interaction struct {
	Code string `json:"code"`
}

type searchParam struct {
	Name          string `json:"name"`
	Type          string `json:"type"`
	Documentation string `json:"documentation,omitempty"`
}

type restOperation struct {
	Name          string `json:"name"`
	Definition    string `json:"definition"`
	Documentation string `json:"documentation,omitempty"`
}

// metadata says what the API can do. It is for everybody.
func (a *API) metadata(ctx context.Context, req metadataRequest) (route.Response[capabilityStatement], error) {
	if err := req.acceptable(); err != nil {
		return route.Response[capabilityStatement]{}, err
	}
	return route.Response[capabilityStatement]{Body: a.capabilities(baseOf(ctx))}, nil
}

func (a *API) capabilities(base string) capabilityStatement {
	c := capabilityStatement{
		ResourceType:   "CapabilityStatement",
		Status:         "active",
		Date:           "2026-11-26",
		Kind:           "instance",
		Software:       software{"Spillway patient API"},
		Implementation: implementation{"The reference service of Spillway. All people in it are invented.", base},
		FHIRVersion:    "4.0.1",
		Format:         []string{mediaType, "json"},
		Rest: []rest{{
			Mode: "server",
			Security: security{
				Service:     []concept{{Coding: []coding{{"http://terminology.hl7.org/CodeSystem/restful-security-service", "OAuth", "OAuth"}}, Text: "OAuth 2.0 bearer tokens"}},
				Description: "A bearer token with scopes as SMART App Launch has them, such as user/Patient.rs. What a role may see is in the documentation of the service.",
			},
			Resource: []restResource{
				of("Patient", []searchParam{
					{"_id", "token", "up to 100, separated by commas"},
					{"_lastUpdated", "date", "eq, ge, le, gt, lt"},
					{"birthdate", "date", "eq, ge, le, gt, lt"},
					{"identifier", "token", "value, system|value or system|"},
					{"name", "string", "what the given or the family name begins with"},
				}, restOperation{"everything", "http://hl7.org/fhir/OperationDefinition/Patient-everything", "By GET, or by POST with Parameters or nothing, as a stream; with _count in pages. It takes _since, _type, start and end. That of all patients is for export jobs."}),
				of("Observation", []searchParam{{"patient", "reference", "required"}, {"code", "token", "of LOINC"}}),
				of("MedicationRequest", []searchParam{{"patient", "reference", "required"}}),
			},
		}},
	}
	if a.cfg.Bulk != nil {
		c.Rest[0].Operation = []restOperation{{"export", bulkDefinitions + "export", bulkDocumentation}}
		c.Rest[0].Resource[0].Operation = append(c.Rest[0].Resource[0].Operation, restOperation{"export", bulkDefinitions + "patient-export", bulkDocumentation})
	}
	return c
}

const (
	bulkDefinitions   = "http://hl7.org/fhir/uv/bulkdata/OperationDefinition/"
	bulkDocumentation = "By GET with Prefer: respond-async, for export jobs. It takes _type, _since and _outputFormat."
)

// of describes a resource that is read and searched.
func of(kind string, params []searchParam, operations ...restOperation) restResource {
	return restResource{
		Type: kind, Interaction: []interaction{{"read"}, {"search-type"}}, Versioning: "versioned", ConditionalRead: "full-support",
		SearchParam: params, Operation: operations,
	}
}
