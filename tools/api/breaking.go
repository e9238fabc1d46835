package main

import (
	"slices"
	"strings"
)

// stable are the packages on their way to v1, with the package whose words they use.
var stable = []string{"spillway", "limiter", "workerpool", "admissionhttp"}

// missing are the lines of a that b does not have. Both are sorted.
func missing(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(line string) bool {
		_, found := slices.BinarySearch(b, line)
		return found
	})
}

// unannounced are the released lines of stable packages that are not there any more,
// unless the changelog names what they are about below "### Breaking" in its first section.
func unannounced(released, now []string, changelog string) []string {
	announced := breakingOf(changelog)
	return slices.DeleteFunc(missing(released, now), func(line string) bool {
		symbol, _, _ := strings.Cut(line, " ")
		i := slices.IndexFunc(stable, func(name string) bool { return strings.HasPrefix(symbol, name+".") })
		return i < 0 || strings.Contains(announced, "`"+symbol+"`")
	})
}

// breakingOf is the text below "### Breaking" in the first section of a changelog.
func breakingOf(changelog string) string {
	_, section, _ := strings.Cut(changelog, "\n## ")
	section, _, _ = strings.Cut(section, "\n## ")
	_, breaking, _ := strings.Cut(section, "\n### Breaking\n")
	breaking, _, _ = strings.Cut(breaking, "\n### ")
	return breaking
}
