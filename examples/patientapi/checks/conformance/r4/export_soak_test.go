//go:build soak

package r4

import "testing"

// Every line of an export is a resource of FHIR.
func TestSoakEveryLineOfAnExportIsFHIR(t *testing.T) { exported(t, 1) }
