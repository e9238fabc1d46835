// Package discreet logs what goes wrong without naming anybody, and no faster than a
// person reads.
package discreet

import (
	"context"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Log writes at most one line a second, and says for how many events it stands: a
// log that grows with the flood is part of the flood. It is safe for concurrent
// use.
type Log struct {
	logger  *slog.Logger
	level   slog.Level
	message string
	count   string // the name of the number of events

	mu   sync.Mutex
	last time.Time
	n    uint64 // since the last line
}

// NewLog returns a Log of one kind of event. Each line counts the events since the
// one before under the name count. A nil logger means that nothing is logged.
func NewLog(logger *slog.Logger, level slog.Level, message, count string) *Log {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &Log{logger: logger, level: level, message: message, count: count}
}

// Add counts an event and writes a line, which describes this one, if one is due.
func (l *Log) Add(now time.Time, about ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n++
	if now.Sub(l.last) >= time.Second {
		l.write(now, about)
	}
}

// Flush writes what no line has told yet.
func (l *Log) Flush(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n > 0 {
		l.write(now, nil)
	}
}

func (l *Log) write(now time.Time, about []any) {
	l.logger.Log(context.Background(), l.level, l.message, append([]any{l.count, l.n}, about...)...)
	l.last, l.n = now, 0
}

// personal is what may say something about somebody: addresses, ids of people,
// dates and numbers as long as those of a phone, and whatever is quoted.
var personal = regexp.MustCompile(`[^\s@"'<>]+@[^\s@"'<>]+|\b[PC][0-9]{4,}\b|[0-9][0-9 -]{4,}[0-9]|"[^"]*"|'[^']*'|` + "`[^`]*`")

// longest is how many bytes of a text are logged.
const longest = 300

// Text returns what of a text, such as that of an error, may be logged: its first
// line, without what looks as if it were about somebody. Stores are asked to name
// nobody, but what a driver says is not theirs. A name of a person looks like any
// word and stays.
func Text(s string) string {
	line, _, _ := strings.Cut(s[:min(len(s), 10*longest)], "\n")
	line = strings.ToValidUTF8(personal.ReplaceAllString(line, "[redacted]"), "?")
	if len(line) <= longest {
		return line
	}
	cut := longest
	for !utf8.RuneStart(line[cut]) {
		cut--
	}
	return line[:cut] + "…"
}
