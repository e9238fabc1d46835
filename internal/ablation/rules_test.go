package main

import (
	"go/parser"
	"go/token"
	"testing"
)

// A rule that the code no longer has, or has otherwise, must not stay in the table.
func TestEachRuleIsInTheCode(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rules {
		text, err := r.without("../..")
		if err != nil {
			t.Error(err)
			continue
		}
		if _, err := parser.ParseFile(token.NewFileSet(), r.file, text, 0); err != nil {
			t.Errorf("%s: %v", r.name, err)
		}
		if seen[r.name] {
			t.Errorf("%q is there twice", r.name)
		}
		seen[r.name] = true
	}
}
