package route

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// scanner reads the tokens of RFC 8259. Its methods return false when they cannot continue.
type scanner struct {
	data string
	at   int
}

// next skips space and returns the next byte, or 0 at the end.
func (s *scanner) next() byte {
	for ; s.at < len(s.data); s.at++ {
		switch c := s.data[s.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// take skips space and consumes c, if c is the next byte.
func (s *scanner) take(c byte) bool {
	if s.next() != c || s.at == len(s.data) {
		return false
	}
	s.at++
	return true
}

func (s *scanner) end() bool { return s.next() == 0 && s.at == len(s.data) }

func (s *scanner) word(word string) bool {
	if !strings.HasPrefix(s.data[s.at:], word) {
		return false
	}
	s.at += len(word)
	return true
}

// string reads a string literal. raw is the text between the quotes; escaped tells whether raw has
// escapes.
func (s *scanner) string() (raw string, escaped, ok bool) {
	s.at++
	for start := s.at; s.at < len(s.data); s.at++ {
		switch c := s.data[s.at]; {
		case c == '"':
			s.at++
			return s.data[start : s.at-1], escaped, true
		case c < ' ':
			return "", false, false
		case c == '\\':
			s.at++
			escaped = true
			if s.at == len(s.data) || !s.escape() {
				return "", false, false
			}
		}
	}
	return "", false, false
}

// escape reads the escape after a backslash, up to its last byte. Half a surrogate pair is refused.
func (s *scanner) escape() bool {
	switch s.data[s.at] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		r, ok := hex(s.data[s.at+1:])
		if !ok {
			return false
		}
		s.at += 4
		if !utf16.IsSurrogate(r) {
			return true
		}
		if !strings.HasPrefix(s.data[s.at+1:], `\u`) {
			return false
		}
		second, ok := hex(s.data[s.at+3:])
		s.at += 6
		return ok && utf16.DecodeRune(r, second) != utf8.RuneError
	}
	return false
}

// hex decodes four hexadecimal digits.
func hex(digits string) (rune, bool) {
	if len(digits) < 4 {
		return 0, false
	}
	for i := range 4 {
		if !isHex(digits[i]) {
			return 0, false
		}
	}
	n, err := strconv.ParseUint(digits[:4], 16, 16)
	return rune(n), err == nil
}

// unescape decodes raw, the text between the quotes of a valid literal that has escapes.
func unescape(raw string) string {
	var b strings.Builder
	b.Grow(len(raw))
	for {
		before, after, found := strings.Cut(raw, `\`)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		raw = after[1:]
		switch c := after[0]; c {
		case 'b':
			b.WriteByte('\b')
		case 'f':
			b.WriteByte('\f')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case 'u':
			r, _ := hex(raw)
			if raw = raw[4:]; utf16.IsSurrogate(r) {
				second, _ := hex(raw[2:])
				r, raw = utf16.DecodeRune(r, second), raw[6:]
			}
			b.WriteRune(r)
		default: // the character itself
			b.WriteByte(c)
		}
	}
}

// number reads a number. whole is false if the number has a fraction or an exponent.
func (s *scanner) number() (text string, whole, ok bool) {
	start := s.at
	s.one('-')
	if !s.one('0') && !s.digits() {
		return "", false, false
	}
	whole = true
	if s.one('.') {
		if whole = false; !s.digits() {
			return "", false, false
		}
	}
	if s.one('e') || s.one('E') {
		_ = s.one('+') || s.one('-')
		if whole = false; !s.digits() {
			return "", false, false
		}
	}
	return s.data[start:s.at], whole, true
}

// isNumber reports whether text is a number.
func isNumber(text string) bool {
	s := scanner{data: text}
	_, _, ok := s.number()
	return ok && s.at == len(text)
}

// integer returns the digits of a number that has a fraction or an exponent, and whether its value
// is an integer. In JSON Schema 1.0 and 1e2 are integers, and -0 is 0.
func integer(text string) (digits string, whole bool) {
	digits, sign := strings.CutPrefix(text, "-")
	exponent := 0
	if i := strings.IndexAny(digits, "eE"); i >= 0 {
		exponent, _ = strconv.Atoi(digits[i+1:]) // or the nearest int, if out of range
		digits = digits[:i]
	}
	before, after, _ := strings.Cut(digits, ".")
	digits = strings.TrimRight(before+after, "0")
	point := len(before) // position in the remaining digits
	zeros := len(digits)
	digits = strings.TrimLeft(digits, "0")
	point -= zeros - len(digits)
	if digits == "" {
		return "0", true
	}
	const most = 40 // digits; no integer type has as many
	switch missing := max(min(int64(exponent), 1<<40), -1<<40) + int64(point-len(digits)); {
	case missing < 0:
		return text, false
	case missing < most:
		digits += strings.Repeat("0", int(missing))
	default:
		digits += strings.Repeat("0", most)
	}
	if sign {
		digits = "-" + digits
	}
	return digits, true
}

func (s *scanner) one(c byte) bool {
	if s.at < len(s.data) && s.data[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *scanner) digits() bool {
	start := s.at
	for s.at < len(s.data) && '0' <= s.data[s.at] && s.data[s.at] <= '9' {
		s.at++
	}
	return s.at > start
}
