package conformance

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi/httpapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/simulated"
)

func TestDocumentAndClientAreUpToDate(t *testing.T) {
	now, err := httpapi.Document()
	require.NoError(t, err)
	if !bytes.Equal(now, oneLine(t)) {
		t.Error("the API has changed: run go generate in this folder")
	}
	sum := sha256.Sum256(Document)
	if from, _, _ := strings.Cut(generatedFrom, " "); from != hex.EncodeToString(sum[:]) {
		t.Error("the client was generated from another document: run go generate in this folder")
	}
}

// oneLine returns Document as it is served. The file is indented for its readers.
func oneLine(t *testing.T) []byte {
	t.Helper()
	var doc bytes.Buffer
	require.NoError(t, json.Compact(&doc, Document))
	return append(doc.Bytes(), '\n')
}

func TestDocumentIsValidAndServed(t *testing.T) {
	s := read(t) // validates it
	store, err := simulated.New(10, 1)
	require.NoError(t, err)
	base, _ := serve(t, store, patterns.Limiter, httpapi.Config{})
	resp, err := http.Get(base + "/openapi.json")
	require.NoError(t, err)
	defer resp.Body.Close()
	if served, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(served, oneLine(t)) {
		t.Errorf("another document is served: %v", err)
	}
	operations := s.operations()
	if len(operations) != len(samples) {
		t.Errorf("%d operations, %d samples", len(operations), len(samples))
	}
	for _, op := range operations {
		r := samples[op.ID](base)
		if ok, faults := s.validator.ValidateHttpRequest(r); !ok {
			t.Errorf("%s: %v", op.ID, faults)
		}
		resp, err := http.DefaultClient.Do(samples[op.ID](base))
		require.NoError(t, err)
		if s.answered(t, op, resp); resp.StatusCode != 200 {
			t.Errorf("%s: %d", op.ID, resp.StatusCode)
		}
	}
}
