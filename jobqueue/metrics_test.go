package jobqueue

import (
	"os"
	"strings"
	"testing"
)

func TestThePageOfThePackageHasEveryMetric(t *testing.T) {
	page, err := os.ReadFile("../docs/packages/jobqueue.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range described {
		if name := strings.ReplaceAll(m.Name, ".", "_"); !strings.Contains(string(page), "`"+name) {
			t.Errorf("%s is not on the page", name)
		}
	}
}
