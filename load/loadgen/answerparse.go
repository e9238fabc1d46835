package loadgen

import (
	"bytes"
	"net/http"
	"time"
)

// parseStatus reads a status line such as HTTP/1.1 200 OK.
func parseStatus(line []byte) (minor, status int, ok bool) {
	const before = len("HTTP/1.")
	if len(line) < before+5 || string(line[:before]) != "HTTP/1." || line[before+1] != ' ' || !isDigit(line[before]) {
		return 0, 0, false
	}
	code := line[before+2:]
	if len(code) > 3 && code[3] != ' ' {
		return 0, 0, false
	}
	for _, c := range code[:3] {
		if !isDigit(c) {
			return 0, 0, false
		}
		status = 10*status + int(c-'0')
	}
	return int(line[before] - '0'), status, true
}

// parseLength reads a decimal number of at most 18 digits.
func parseLength(text []byte) (n int64, ok bool) {
	if len(text) == 0 || len(text) > 18 {
		return 0, false
	}
	for _, c := range text {
		if !isDigit(c) {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	return n, true
}

// parseAfter reads the value of a Retry-After header, in seconds or as a date. Invalid values and
// past dates are 0.
func parseAfter(text []byte) time.Duration {
	if n, ok := parseLength(text); ok {
		return time.Duration(min(n, int64(mostAfter/time.Second))) * time.Second
	}
	at, err := http.ParseTime(string(text))
	if err != nil {
		return 0
	}
	return min(max(time.Until(at), 0), mostAfter)
}

const mostAfter = 24 * time.Hour

// headerReason says why a service with Spillway refused. admissionhttp sets it.
const headerReason = "Spillway-Reason"

func isRefusal(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}

// parseReason reads the value of headerReason, which is a short word. Other values are empty. An
// equal reason of an earlier answer is returned instead of a copy.
func parseReason(value []byte, before string) string {
	switch {
	case string(value) == before:
		return before
	case len(value) > 64 || !isToken(string(value)):
		return ""
	}
	return string(value)
}

// parseChunkSize reads the hexadecimal number before any extension.
func parseChunkSize(line []byte) (n int64, ok bool) {
	for len(line) > 0 && isBlank(line[len(line)-1]) {
		line = line[:len(line)-1]
	}
	if i := bytes.IndexByte(line, ';'); i >= 0 {
		line = line[:i]
	}
	if len(line) == 0 || len(line) > 15 {
		return 0, false
	}
	for _, c := range line {
		switch {
		case isDigit(c):
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		n = n<<4 | int64(c)
	}
	return n, true
}

// is reports whether text equals want in any case of letters. want is in lower case.
func is(text []byte, want string) bool {
	if len(text) != len(want) {
		return false
	}
	for i, c := range text {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != want[i] {
			return false
		}
	}
	return true
}

// hasToken reports whether a comma-separated list holds token, which is in lower case.
func hasToken(list []byte, token string) bool {
	for len(list) > 0 {
		item := list
		if i := bytes.IndexByte(list, ','); i >= 0 {
			item, list = list[:i], list[i+1:]
		} else {
			list = nil
		}
		if is(trimBlanks(item), token) {
			return true
		}
	}
	return false
}

func trimCR(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\r' {
		return line[:n-1]
	}
	return line
}

func trimBlanks(b []byte) []byte {
	for len(b) > 0 && isBlank(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && isBlank(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
