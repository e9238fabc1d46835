package syntax

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ECMA translates a pattern that package regexp has compiled to ECMA-262 with the flag u, the
// language of patterns in JSON Schema. ok is false if ECMA-262 cannot express the pattern, or only
// at length. Examples are flags and the negation of a POSIX class.
func ECMA(pattern string) (translated string, ok bool) {
	t := translator{rest: pattern}
	for t.rest != "" && !t.fails {
		t.token()
	}
	return t.out.String(), !t.fails
}

type translator struct {
	rest      string
	out       strings.Builder
	assertion bool // the last token was an assertion, after which ECMA-262 allows no repetition
	fails     bool
}

var repetition = regexp.MustCompile(`^(?:[*+?]|\{(?:0|[1-9][0-9]*)(?:,(?:0|[1-9][0-9]*)?)?\})`)

// token translates the next token outside of a class.
func (t *translator) token() {
	if repeated := repetition.FindString(t.rest); repeated != "" {
		t.fails = t.fails || t.assertion
		t.put(repeated)
		t.rest = t.rest[len(repeated):]
		return
	}
	t.assertion = false
	c := t.next()
	switch c {
	case '^', '$':
		t.assertion = true
		t.out.WriteRune(c)
	case '.':
		t.put(`[^\n]`) // ECMA-262 has more line terminators
	case '(':
		t.group()
	case '[':
		t.class()
	case '\\':
		t.escaped()
	case '{', '}', ']':
		t.character(c, false)
	default:
		t.out.WriteRune(c)
	}
}

func (t *translator) put(s string) { t.out.WriteString(s) }

// next consumes a character.
func (t *translator) next() rune {
	c, size := utf8.DecodeRuneInString(t.rest)
	t.rest = t.rest[size:]
	return c
}

// take consumes prefix, if rest begins with it.
func (t *translator) take(prefix string) (found bool) {
	t.rest, found = strings.CutPrefix(t.rest, prefix)
	return found
}

// group translates the text after the opening parenthesis of a group. It drops the group's name,
// which is unused and may be invalid in ECMA-262.
func (t *translator) group() {
	switch {
	case t.take("?:"):
		t.put("(?:")
	case t.take("?P<"), t.take("?<"):
		_, t.rest, _ = strings.Cut(t.rest, ">")
		t.put("(")
	case strings.HasPrefix(t.rest, "?"):
		t.fails = true
	default:
		t.put("(")
	}
}

// escaped translates the text after a backslash outside of a class.
func (t *translator) escaped() {
	if t.set(false) {
		return
	}
	switch {
	case t.take("A"):
		t.put("^")
		t.assertion = true
	case t.take("z"):
		t.put("$")
		t.assertion = true
	case t.take("b"):
		t.put(`\b`)
		t.assertion = true
	case t.take("B"):
		t.put(`\B`)
		t.assertion = true
	case t.take("Q"):
		var literal string
		literal, t.rest, _ = strings.Cut(t.rest, `\E`)
		t.fails = t.fails || literal == "" // a following repetition may apply to the token before
		for _, c := range literal {
			t.character(c, false)
		}
	default:
		t.character(t.code(), false)
	}
}

// set translates an escape that is a set of characters, if rest begins with one. class tells
// whether the escape is in a class.
func (t *translator) set(class bool) bool {
	c, size := utf8.DecodeRuneInString(t.rest)
	switch c {
	case 'd', 'D', 'w', 'W':
		t.put(`\` + string(c))
	case 's', 'S': // in ECMA-262 \s has more characters
		const space = `\t\n\f\r `
		switch {
		case class && c == 's':
			t.put(space)
		case class:
			t.put(`\x00-\x08\x0b\x0e-\x1f!-\u{10ffff}`)
		case c == 's':
			t.put("[" + space + "]")
		default:
			t.put("[^" + space + "]")
		}
	case 'p', 'P':
		t.rest = t.rest[size:]
		t.property(c == 'P')
		return true
	default:
		return false
	}
	t.rest = t.rest[size:]
	return true
}

// property translates the name of a Unicode class. ECMA-262 has the same categories under the same
// names. It writes a script as Script=name.
func (t *translator) property(not bool) {
	name := string(t.next())
	if name == "{" {
		name, t.rest, _ = strings.Cut(t.rest, "}")
	}
	if after, found := strings.CutPrefix(name, "^"); found {
		name, not = after, !not
	}
	switch {
	case unicode.Categories[name] != nil || unicode.CategoryAliases[name] != "" || slices.Contains([]string{"Any", "ASCII", "Assigned"}, name):
	case unicode.Scripts[name] != nil:
		name = "Script=" + name
	default:
		t.fails = true
	}
	letter := "p"
	if not {
		letter = "P"
	}
	t.put(`\` + letter + "{" + name + "}")
}

// code consumes the escape of one character, after its backslash.
func (t *translator) code() rune {
	c := t.next()
	digits, base := "", 16
	switch {
	case c == 'a':
		return '\a'
	case c == 'f':
		return '\f'
	case c == 'n':
		return '\n'
	case c == 'r':
		return '\r'
	case c == 't':
		return '\t'
	case c == 'v':
		return '\v'
	case c == 'x' && t.take("{"):
		digits, t.rest, _ = strings.Cut(t.rest, "}")
	case c == 'x' && len(t.rest) >= 2:
		digits, t.rest = t.rest[:2], t.rest[2:]
	case '0' <= c && c <= '7':
		more := 0
		for more < min(2, len(t.rest)) && '0' <= t.rest[more] && t.rest[more] <= '7' {
			more++
		}
		digits, t.rest, base = string(c)+t.rest[:more], t.rest[more:], 8
	case c < utf8.RuneSelf && !isLetter(byte(c)) && !isDigit(byte(c)):
		return c
	}
	n, err := strconv.ParseUint(digits, base, 32)
	t.fails = t.fails || err != nil
	return rune(n)
}

// character writes a literal character.
func (t *translator) character(c rune, class bool) {
	special := `^$\.*+?()[]{}|/`
	if class {
		special = `\]-[`
	}
	switch {
	case strings.ContainsRune(special, c):
		t.put(`\` + string(c))
	case c < ' ' || c == 0x7f:
		t.put(fmt.Sprintf(`\x%02x`, c))
	case c == utf8.RuneError || !unicode.IsPrint(c):
		t.put(fmt.Sprintf(`\u{%x}`, c))
	default:
		t.out.WriteRune(c)
	}
}

// posix maps the names of the classes that are written [:name:] within a class.
var posix = map[string]string{
	"alnum": `0-9A-Za-z`, "alpha": `A-Za-z`, "ascii": `\x00-\x7f`, "blank": `\t `, "cntrl": `\x00-\x1f\x7f`, "digit": `0-9`, "graph": `!-~`,
	"lower": `a-z`, "print": ` -~`, "punct": `!-\/:-@\[-` + "`" + `\{-~`, "space": `\t-\r `, "upper": `A-Z`, "word": `\w`, "xdigit": `0-9A-Fa-f`,
}

// class translates the text after the opening bracket of a class.
func (t *translator) class() {
	t.put("[")
	if t.take("^") {
		t.put("^")
	}
	for first := true; first || !t.take("]"); first = false {
		switch {
		case t.rest == "" || t.fails:
			t.fails = true
			return
		case strings.HasPrefix(t.rest, "[:") && strings.Contains(t.rest, ":]"):
			name, rest, _ := strings.Cut(t.rest[len("[:"):], ":]")
			t.rest, t.fails = rest, posix[name] == ""
			t.put(posix[name])
		case strings.HasPrefix(t.rest, `\`) && t.setWithin():
		default:
			t.span(first)
		}
	}
	t.put("]")
}

// setWithin calls set for an escape within a class, and consumes its backslash.
func (t *translator) setWithin() bool {
	backslash := t.rest
	t.rest = t.rest[1:]
	if t.set(true) {
		return true
	}
	t.rest = backslash
	return false
}

// span translates one character of a class, or a range.
func (t *translator) span(first bool) {
	outer := first || strings.HasPrefix(t.rest, "-]")
	low := t.element()
	if len(t.rest) < 2 || t.rest[0] != '-' || t.rest[1] == ']' {
		switch {
		case low == '-' && outer:
			t.put("-")
		case low == '^' && first:
			t.put(`\^`)
		default:
			t.character(low, true)
		}
		return
	}
	t.rest = t.rest[1:]
	if low == '^' && first {
		t.put(`\`)
	}
	t.character(low, true)
	t.put("-")
	t.character(t.element(), true)
}

// element consumes a character of a class.
func (t *translator) element() rune {
	if t.take(`\`) {
		return t.code()
	}
	return t.next()
}
