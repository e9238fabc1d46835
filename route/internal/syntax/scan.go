// Package syntax reads the texts that requests, rules and patterns consist of: the tokens of JSON,
// times, e-mail addresses, URIs, lists in headers, and regular expressions.
package syntax

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Scanner reads the tokens of RFC 8259. Its methods return false when they cannot continue.
type Scanner struct {
	Data string
	At   int
}

// Next skips space and returns the next byte, or 0 at the end.
func (s *Scanner) Next() byte {
	for ; s.At < len(s.Data); s.At++ {
		switch c := s.Data[s.At]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// Take skips space and consumes c, if c is the next byte.
func (s *Scanner) Take(c byte) bool {
	if s.Next() != c || s.At == len(s.Data) {
		return false
	}
	s.At++
	return true
}

// End skips space and reports whether nothing follows.
func (s *Scanner) End() bool { return s.Next() == 0 && s.At == len(s.Data) }

// Word consumes word, such as null, if it comes next.
func (s *Scanner) Word(word string) bool {
	if !strings.HasPrefix(s.Data[s.At:], word) {
		return false
	}
	s.At += len(word)
	return true
}

// Literal reads a string literal. raw is the text between the quotes; escaped tells whether raw has
// escapes.
func (s *Scanner) Literal() (raw string, escaped, ok bool) {
	s.At++
	for start := s.At; s.At < len(s.Data); s.At++ {
		switch c := s.Data[s.At]; {
		case c == '"':
			s.At++
			return s.Data[start : s.At-1], escaped, true
		case c < ' ':
			return "", false, false
		case c == '\\':
			s.At++
			escaped = true
			if s.At == len(s.Data) || !s.escape() {
				return "", false, false
			}
		}
	}
	return "", false, false
}

// escape reads the escape after a backslash, up to its last byte. Half a surrogate pair is refused.
func (s *Scanner) escape() bool {
	switch s.Data[s.At] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		r, ok := hex(s.Data[s.At+1:])
		if !ok {
			return false
		}
		s.At += 4
		if !utf16.IsSurrogate(r) {
			return true
		}
		if !strings.HasPrefix(s.Data[s.At+1:], `\u`) {
			return false
		}
		second, ok := hex(s.Data[s.At+3:])
		s.At += 6
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
		if !IsHex(digits[i]) {
			return 0, false
		}
	}
	n, err := strconv.ParseUint(digits[:4], 16, 16)
	return rune(n), err == nil
}

// Unescape decodes raw, the text between the quotes of a valid literal that has escapes.
func Unescape(raw string) string {
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

// Number reads a number. whole is false if the number has a fraction or an exponent.
func (s *Scanner) Number() (text string, whole, ok bool) {
	start := s.At
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
	return s.Data[start:s.At], whole, true
}

// IsNumber reports whether text is a number.
func IsNumber(text string) bool {
	s := Scanner{Data: text}
	_, _, ok := s.Number()
	return ok && s.At == len(text)
}

// Integer returns the digits of a number that has a fraction or an exponent, and whether its value
// is an integer. In JSON Schema 1.0 and 1e2 are integers, and -0 is 0.
func Integer(text string) (digits string, whole bool) {
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

func (s *Scanner) one(c byte) bool {
	if s.At < len(s.Data) && s.Data[s.At] == c {
		s.At++
		return true
	}
	return false
}

func (s *Scanner) digits() bool {
	start := s.At
	for s.At < len(s.Data) && '0' <= s.Data[s.At] && s.Data[s.At] <= '9' {
		s.At++
	}
	return s.At > start
}
