package r4

import (
	"strings"
	"sync"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
)

// schema is read once for all tests.
var schema = sync.OnceValue(func() *Schema {
	s, err := New()
	if err != nil {
		panic(err)
	}
	return s
})

// A check that takes everything proves nothing.
func TestTheSchemaTellsRightFromWrong(t *testing.T) {
	const right = `{"resourceType":"Bundle","type":"searchset","link":[{"relation":"self","url":"http://a/b"}],"entry":[{"fullUrl":"http://a/Patient/1","resource":{"resourceType":"Patient","id":"P1","meta":{"versionId":"1","lastUpdated":"2025-01-01T00:00:00Z"},"name":[{"family":"F","given":["G"]}],"gender":"female","birthDate":"1980-02-29"},"search":{"mode":"match"}}]}`
	require.NoError(t, schema().Check([]byte(right)))
	for old, changed := range map[string]string{
		`"female"`: `"f"`, `"1980-02-29"`: `"29.02.1980"`, `2025-01-01T00:00:00Z`: `2025-01-01 00:00:00`, `"P1"`: `"P 1"`, `"given":["G"]`: `"given":"G"`,
		`"family"`: `"surname"`, `"searchset"`: `"list"`, `"mode":"match"`: `"mode":"hit"`, `"Patient"`: `"Patients"`, `"versionId":"1"`: `"versionId":1`,
	} {
		if wrong := strings.Replace(right, old, changed, 1); wrong == right || schema().Check([]byte(wrong)) == nil {
			t.Errorf("%s instead of %s was taken", changed, old)
		}
	}
}
