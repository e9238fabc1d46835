// Package logtest keeps what a test's subject logs.
package logtest

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// Log is a log. The zero value is empty and ready. A Log is safe for concurrent use.
type Log struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write adds text.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// Logger returns a logger that writes lines of text to the log.
func (l *Log) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// Take returns the text that was written since the last call.
func (l *Log) Take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return l.text.String()
}

// String returns the text that was written since the last call of Take.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Lines returns the lines that were written since the last call of Take.
func (l *Log) Lines() []string {
	return slices.Collect(strings.Lines(l.String()))
}

// With returns the first line that contains part, or nothing.
func (l *Log) With(part string) string {
	for _, line := range l.Lines() {
		if strings.Contains(line, part) {
			return line
		}
	}
	return ""
}
