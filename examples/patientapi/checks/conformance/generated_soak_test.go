//go:build soak

package conformance

import (
	"testing"
	"time"
)

// Clients of other generated inputs each time find no contradiction between the document
// and the service.
func TestSoakGeneratedClientsFindNoContradiction(t *testing.T) {
	for range 10 {
		generatedClient(t, uint64(time.Now().UnixNano()))
	}
}
