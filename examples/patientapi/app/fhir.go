package app

import (
	"encoding/hex"
	"net/url"
	"os"
	"strings"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/export"
	"github.com/spillway-go/spillway/examples/patientapi/fhir"
	"github.com/spillway-go/spillway/examples/patientapi/front"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
)

// FHIRFlags say how the FHIR API links to itself.
type FHIRFlags struct {
	Base        string `name:"fhir-base" help:"URL of the FHIR API as clients reach it, such as https://hospital.example/fhir; what each request says unless given, which is not right behind a proxy that ends TLS." env:"SPILLWAY_FHIR_BASE" placeholder:"URL"`
	PageKeyFile string `name:"fhir-page-key-file" help:"File with the key, 64 hexadecimal digits, that encrypts links to further pages: replicas behind one address need the same. A new one at each start unless given." env:"SPILLWAY_FHIR_PAGE_KEY_FILE" placeholder:"FILE"`
}

// fhirAPI returns the FHIR API, behind what stands in front of the other one.
func (c *Command) fhirAPI(front *front.Front, runner *patterns.Runner, store patientapi.Store, bulk *export.Exports) (*fhir.API, error) {
	key, err := c.FHIR.check()
	if err != nil {
		return nil, err
	}
	api, err := fhir.New(fhir.Config{Front: front, Runner: runner, Store: store, Base: c.FHIR.Base, PageKey: key, Bulk: bulk, Timeout: c.Deadline.Timeout})
	return api, usage(err)
}

// check returns the key; nil if there is none. Its errors repeat nothing of it.
func (f FHIRFlags) check() (key []byte, err error) {
	if u, err := url.Parse(f.Base); f.Base != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "") {
		return nil, usagef("fhir-base: want an absolute URL and nothing behind its path, such as https://hospital.example/fhir")
	}
	if f.PageKeyFile == "" {
		return nil, nil
	}
	text, err := os.ReadFile(f.PageKeyFile)
	if err != nil {
		return nil, usagef("fhir-page-key-file: %w", err)
	}
	if key, err = hex.DecodeString(strings.TrimSpace(string(text))); err != nil || len(key) != fhir.PageKeySize {
		return nil, usagef("fhir-page-key-file %s: want 64 hexadecimal digits, such as openssl rand -hex 32 prints", f.PageKeyFile)
	}
	return key, nil
}
