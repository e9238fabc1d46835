package route

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// walker is a recursive reader of RFC 8259. Its methods return false when they
// cannot go on.
type walker struct {
	s     *scratch
	data  []byte
	at    int
	depth int
	most  int
	lax   bool
	told  bool // why it cannot go on
}

func (w *walker) space() {
	for w.at < len(w.data) {
		switch w.data[w.at] {
		case ' ', '\t', '\r', '\n':
			w.at++
		default:
			return
		}
	}
}

// next skips space and returns the byte there, or 0 at the end.
func (w *walker) next() byte {
	w.space()
	if w.at == len(w.data) {
		return 0
	}
	return w.data[w.at]
}

func (w *walker) take(c byte) bool {
	if w.next() != c {
		return false
	}
	w.at++
	return true
}

func (w *walker) end() bool { return w.next() == 0 && w.at == len(w.data) }

func (w *walker) word(word string) bool {
	if !bytes.HasPrefix(w.data[w.at:], []byte(word)) {
		return false
	}
	w.at += len(word)
	return true
}

// string reads a string and returns it as written, quotes included.
func (w *walker) string() ([]byte, bool) {
	start := w.at
	for w.at++; w.at < len(w.data); w.at++ {
		switch c := w.data[w.at]; {
		case c == '"':
			w.at++
			return w.data[start:w.at], true
		case c < ' ':
			return nil, false
		case c == '\\':
			w.at++
			if w.at == len(w.data) || !w.escape() {
				return nil, false
			}
		}
	}
	return nil, false
}

// escape reads what follows a backslash, up to its last byte. Half a surrogate
// pair is no character.
func (w *walker) escape() bool {
	switch w.data[w.at] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		r, ok := w.hex()
		if !ok || utf16.IsSurrogate(r) {
			if !ok || w.at+2 >= len(w.data) || w.data[w.at+1] != '\\' || w.data[w.at+2] != 'u' {
				return false
			}
			w.at += 2
			second, ok := w.hex()
			return ok && utf16.DecodeRune(r, second) != utf8.RuneError
		}
		return true
	}
	return false
}

// hex reads the four digits after the u, up to the last.
func (w *walker) hex() (rune, bool) {
	if w.at+4 >= len(w.data) {
		return 0, false
	}
	digits := w.data[w.at+1 : w.at+5]
	for _, c := range digits {
		if !isHex(c) {
			return 0, false
		}
	}
	w.at += 4
	n, err := strconv.ParseUint(string(digits), 16, 16)
	return rune(n), err == nil
}

// unquote returns the text of a valid string literal, in memory of its own.
func unquote(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var text string
	_ = decodeJSON(raw, &text, false)
	return text
}

func (w *walker) take1(c byte) bool {
	if w.at < len(w.data) && w.data[w.at] == c {
		w.at++
		return true
	}
	return false
}

func (w *walker) digits() bool {
	start := w.at
	for w.at < len(w.data) && '0' <= w.data[w.at] && w.data[w.at] <= '9' {
		w.at++
	}
	return w.at > start
}
