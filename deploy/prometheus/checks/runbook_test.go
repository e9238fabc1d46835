package checks

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

const docs = "../../../docs/operate/"

var heading = regexp.MustCompile(`(?m)^#+ (.*)$`)

// sections returns the anchors of a page of docs/operate, and its text.
func sections(t *testing.T, page string) (anchors map[string]bool, text string) {
	t.Helper()
	content, err := os.ReadFile(docs + page)
	if err != nil {
		t.Fatal(err)
	}
	anchors = map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(string(content), -1) {
		anchors[strings.ReplaceAll(strings.ToLower(h[1]), " ", "-")] = true
	}
	return anchors, string(content)
}

func TestEachAlertLeadsToTheRunbook(t *testing.T) {
	_, metrics := sections(t, "metrics.md")
	_, runbook := sections(t, "runbook.md")
	for _, rule := range rules(t) {
		if row := fmt.Sprintf("| %s | %s |", rule.Alert, rule.Labels["severity"]); !strings.Contains(metrics, row) {
			t.Errorf("metrics.md has no row %s", row)
		}
		if row := fmt.Sprintf("| `%s` |", rule.Alert); !strings.Contains(runbook, row) {
			t.Errorf("runbook.md has no row %s", row)
		}
		page, anchor, _ := strings.Cut(strings.TrimPrefix(rule.Annotations["runbook_url"], "https://github.com/spillway-go/spillway/blob/main/docs/operate/"), "#")
		if anchors, _ := sections(t, page); !anchors[anchor] {
			t.Errorf("%s: %s has no section %q", rule.Alert, page, anchor)
		}
	}
}
