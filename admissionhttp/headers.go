package admissionhttp

import (
	"strings"
	"time"
)

// longestDeadline is the longest deadline of a caller; longer ones are cut to it.
const longestDeadline = 24 * time.Hour

// parseDeadline returns the time in text and whether text is valid: up to eight digits, and a unit
// of grpc-timeout, or none for milliseconds. The result is at most longestDeadline.
func parseDeadline(text string) (time.Duration, bool) {
	n, digits := int64(0), 0
	for digits < len(text) && '0' <= text[digits] && text[digits] <= '9' {
		if digits == 8 {
			return 0, false
		}
		n = n*10 + int64(text[digits]-'0')
		digits++
	}
	if digits == 0 {
		return 0, false
	}
	unit := time.Millisecond
	switch text[digits:] {
	case "", "m":
	case "H":
		unit = time.Hour
	case "M":
		unit = time.Minute
	case "S":
		unit = time.Second
	case "u":
		unit = time.Microsecond
	case "n":
		unit = time.Nanosecond
	default:
		return 0, false
	}
	if n > int64(longestDeadline/unit) {
		return longestDeadline, true
	}
	return time.Duration(n) * unit, true
}

const eventStream = "text/event-stream"

// streams reports whether a Content-Type belongs to an endless answer.
func streams(contentType string) bool {
	return isMedia(contentType, eventStream) || isMedia(contentType, "multipart/x-mixed-replace")
}

// accepts reports whether an Accept line names text/event-stream.
func accepts(line string) bool {
	for part := range strings.SplitSeq(line, ",") {
		if isMedia(part, eventStream) {
			return true
		}
	}
	return false
}

// isMedia reports whether text is the media type, with any parameters.
func isMedia(text, media string) bool {
	name, _, _ := strings.Cut(text, ";")
	name = strings.TrimSpace(name)
	return len(name) == len(media) && strings.EqualFold(name, media)
}
