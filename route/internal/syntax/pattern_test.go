package syntax

import (
	"regexp"
	"testing"
)

func TestSimplePatternsNeedNoRegexp(t *testing.T) {
	for pattern, simple := range map[string]bool{
		`^[+0-9 ]{5,20}$`: true, `^[0-9]{5}$`: true, `^[A-Z]{2}[0-9]+$`: true, `^[a-z]+-[0-9]*\.x?$`: true, `^P\d{6}$`: true, `^$`: true, `^[^,]*$`: true, `^[a-z]{3}[a-z0-9]*$`: true, `\Aab\z`: true,
		`[0-9]`: false, `^[0-9]`: false, `^a*a$`: false, `^a?b*a$`: false, `^(ab)+$`: false, `^a|b$`: false, `(?i)^a$`: false, `^é$`: false, `^(?m:^)a$`: false, `^.$`: false, `(?m)^a$`: false, `^[a-z]*\b$`: false,
	} {
		if got := sequenceOf(pattern) != nil; got != simple {
			t.Errorf("%s: simple %t", pattern, got)
		}
	}
}

func FuzzPattern(f *testing.F) {
	for _, pattern := range []string{`^[+0-9 ]{5,20}$`, `^[A-Z]{2,3}-?[0-9]+$`, `^[^a]*a{0,2}$`, `^\w+@\w+\.[a-z]{2,}$`, `^a{2}$`, `^a{2,}b*c?$`, `^(?i)ab$`, `^[\x00-\x{10ffff}]{2}$`, `^[[:^alpha:]]+x$`, `^a{0}$`, `^(?:a|b)[c]$`, `^[a]{0,0}b$`} {
		for _, text := range []string{"", "a", "aa", "aab", "abc", "+44 20 7946", "AB-12", "AB12x", "a@b.cd", "é", "a\xff", "x\n", "bc"} {
			f.Add(pattern, text)
		}
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		re, err := regexp.Compile(pattern)
		if err != nil || sequenceOf(pattern) == nil {
			return
		}
		if got, want := Matcher(re)(text), re.MatchString(text); got != want {
			t.Fatalf("%q matches %q: %t, regexp says %t", pattern, text, got, want)
		}
	})
}
