package jobqueue

import (
	"os"
	"strings"
	"testing"
)

func TestTheDocumentationHasEveryMetric(t *testing.T) {
	page, err := os.ReadFile("../docs/operate/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range described {
		if name := strings.ReplaceAll(m.Name, ".", "_"); !strings.Contains(string(page), "`"+name) {
			t.Errorf("%s is not in metrics.md", name)
		}
	}
}
