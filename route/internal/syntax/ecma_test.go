package syntax

import (
	"regexp"
	"strings"
	"testing"
)

// translations maps patterns of package regexp to ECMA-262; an empty value means no translation.
var translations = map[string]string{
	// The same in both.
	`^P[0-9]{6}$`: `^P[0-9]{6}$`, `^[+0-9 ]{5,20}$`: `^[+0-9 ]{5,20}$`, `^\P{C}*$`: `^\P{C}*$`, `^[^\p{Z}\p{C}]+( +[^\p{Z}\p{C}]+)*$`: `^[^\p{Z}\p{C}]+( +[^\p{Z}\p{C}]+)*$`,
	`^[A-Za-z!#$%&'*+/=?^_{|}~-]+(\.[a-z]+)*@$`: `^[A-Za-z!#$%&'*+/=?^_{|}~-]+(\.[a-z]+)*@$`, `a|b|`: `a|b|`, `(?:a*)*?b+?c??`: `(?:a*)*?b+?c??`, `\d\D\w\W\bx\B`: `\d\D\w\W\bx\B`, `[\d\w-]`: `[\d\w-]`, `^é😀$`: `^é😀$`, `a{2}b{2,}c{2,3}?`: `a{2}b{2,}c{2,3}?`, `/`: `/`, `(^)*a`: `(^)*a`,
	// Different patterns.
	`\Aa\z`: `^a$`, `(?P<name>a)(?<b>c)`: `(a)(c)`, `\pL\PN`: `\p{L}\P{N}`, `\p{^L}\P{^Lu}\p{Letter}`: `\P{L}\p{Lu}\p{Letter}`, `\p{Greek}[\P{Han}]`: `\p{Script=Greek}[\P{Script=Han}]`,
	`[[:alpha:]_]`: `[A-Za-z_]`, `[^[:space:][:punct:]]`: `[^\t-\r !-\/:-@\[-` + "`" + `\{-~]`, `[[:word:]-z]`: `[\w\-z]`, `.`: `[^\n]`, `\s\S`: `[\t\n\f\r ][^\t\n\f\r ]`, `[\s\S]`: `[\t\n\f\r \x00-\x08\x0b\x0e-\x1f!-\u{10ffff}]`,
	`\Qa.b\E+`: `a\.b+`, `\Q[`: `\[`, `\-\@\_\"`: `-@_"`, `a{b}`: `a\{b\}`, `a{,5}`: `a\{,5\}`, `a{01}`: `a\{01\}`, `]`: `\]`, `[]a]`: `[\]a]`, `[^]a]`: `[^\]a]`, `[a-]`: `[a-]`, `[-a]`: `[-a]`, `[\d-z]`: `[\d\-z]`, `[a-c-e]`: `[a-c\-e]`, `[\^a]`: `[\^a]`, `[\^-a]`: `[\^-a]`, `[a^]`: `[a^]`, `[[a]`: `[\[a]`, `[--/]`: `[\--/]`, `[\]\\]`: `[\]\\]`,
	`\a\f\n\r\t\v`: `\x07\x0c\x0a\x0d\x09\x0b`, `\x41\x{1F600}\101\0\x0`[:19]: `A😀A\x00`, `[\x00-\x{10FFFF}]`: `[\x00-\u{10ffff}]`, "a\u00a0\u2028": `a` + "\u00a0\u2028", `\x{a0}`: `\u{a0}`, `\/`: `\/`,
	// No translation.
	`(?i)a`: ``, `(?s).`: ``, `(?m)^a$`: ``, `(?U)a+`: ``, `(?i:a)b`: ``, `a(?-s:.)`: ``, `^*a`: ``, `\b+`: ``, `$?`: ``, `a\z*`: ``, `[[:^alpha:]]`: ``, `\p{greek}`: ``, `^\Q\E*`: ``,
}

func TestPatternsOfTheDocumentAreThoseOfECMA262(t *testing.T) {
	for pattern, want := range translations {
		if _, err := regexp.Compile(pattern); err != nil {
			t.Errorf("%s: %v", pattern, err)
			continue
		}
		got, ok := ECMA(pattern)
		if ok != (want != "") || ok && got != want {
			t.Errorf("%s: %s, %t; want %s", pattern, got, ok, want)
		}
	}
}

// A translation matches the same texts as its original. Package regexp supports all constructs that
// translations use, some of them in another spelling.
func FuzzECMA(f *testing.F) {
	for pattern := range translations {
		for _, text := range []string{"", "a", "P123456", "a.b\n", "é😀", "A-z_]", "\x00\x07\u2028", "]{}[^-"} {
			f.Add(pattern, text)
		}
	}
	spelled := strings.NewReplacer(`\\`, `\\`, `\u{`, `\x{`, `{Script=`, `{`)
	f.Fuzz(func(t *testing.T, pattern, text string) {
		re, err := regexp.Compile(pattern)
		if err != nil {
			return
		}
		translated, ok := ECMA(pattern)
		if !ok {
			return
		}
		again, err := regexp.Compile(spelled.Replace(translated))
		if err != nil {
			t.Fatalf("%q became %q: %v", pattern, translated, err)
		}
		if got, want := again.MatchString(text), re.MatchString(text); got != want {
			t.Errorf("%q became %q, which matches %q: %t", pattern, translated, text, got)
		}
	})
}
