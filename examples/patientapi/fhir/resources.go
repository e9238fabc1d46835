package fhir

import "time"

// These are the resources of FHIR R4 with the elements that this service has. They are
// plain structs, so that they are encoded without maps in between. FHIR has no empty
// lists and objects: what may be empty is omitted.

type meta struct {
	VersionID   string    `json:"versionId"`
	LastUpdated time.Time `json:"lastUpdated"`
}

type identifier struct {
	Use    string `json:"use,omitempty"`
	System string `json:"system"`
	Value  string `json:"value"`
}

type coding struct {
	System  string `json:"system"`
	Code    string `json:"code"`
	Display string `json:"display,omitempty"`
}

type concept struct {
	Coding []coding `json:"coding,omitempty"`
	Text   string   `json:"text,omitempty"`
}

// reference leads to another resource, or names somebody by an identifier where this
// API has no such resource.
type reference struct {
	Reference  string      `json:"reference,omitempty"`
	Type       string      `json:"type,omitempty"`
	Identifier *identifier `json:"identifier,omitempty"`
	Display    string      `json:"display,omitempty"`
}

type patient struct {
	ResourceType        string         `json:"resourceType"`
	ID                  string         `json:"id"`
	Meta                meta           `json:"meta"`
	Identifier          []identifier   `json:"identifier,omitempty"`
	Name                []humanName    `json:"name"`
	Telecom             []contactPoint `json:"telecom,omitempty"`
	Gender              string         `json:"gender,omitempty"`
	BirthDate           string         `json:"birthDate,omitempty"`
	Address             []address      `json:"address,omitempty"`
	GeneralPractitioner []reference    `json:"generalPractitioner,omitempty"`
}

type humanName struct {
	Use    string   `json:"use"`
	Family string   `json:"family"`
	Given  []string `json:"given"`
}

type contactPoint struct {
	System string `json:"system"`
	Value  string `json:"value"`
	Use    string `json:"use"`
}

type address struct {
	Use        string   `json:"use"`
	Line       []string `json:"line"`
	City       string   `json:"city"`
	PostalCode string   `json:"postalCode"`
}

type observation struct {
	ResourceType  string    `json:"resourceType"`
	ID            string    `json:"id"`
	Meta          meta      `json:"meta"`
	Status        string    `json:"status"`
	Category      []concept `json:"category"`
	Code          concept   `json:"code"`
	Subject       reference `json:"subject"`
	Effective     time.Time `json:"effectiveDateTime"`
	ValueQuantity quantity  `json:"valueQuantity"`
}

type quantity struct {
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	System string  `json:"system"`
	Code   string  `json:"code"`
}

type medicationRequest struct {
	ResourceType      string    `json:"resourceType"`
	ID                string    `json:"id"`
	Meta              meta      `json:"meta"`
	Status            string    `json:"status"`
	Intent            string    `json:"intent"`
	Medication        concept   `json:"medicationCodeableConcept"`
	Subject           reference `json:"subject"`
	AuthoredOn        string    `json:"authoredOn,omitempty"`
	Requester         reference `json:"requester"`
	DosageInstruction []dosage  `json:"dosageInstruction,omitempty"`
}

type dosage struct {
	Text string `json:"text"`
}
