package discreet

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestOneLineASecondWhateverHappens(t *testing.T) {
	var out bytes.Buffer
	l := NewLog(slog.New(slog.NewTextHandler(&out, nil)), slog.LevelWarn, "shedding", "refused")
	start := time.Unix(1000, 0)
	for i := range 5000 { // five seconds at 1,000/s
		l.Add(start.Add(time.Duration(i) * time.Millisecond))
	}
	l.Flush(start.Add(5 * time.Second))
	l.Flush(start.Add(5 * time.Second)) // nothing left to tell
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 6 {
		t.Fatalf("%d lines in five seconds:\n%s", len(lines), out.String())
	}
	if !strings.Contains(lines[4], "refused=1000") {
		t.Errorf("a line should count what it stands for: %s", lines[4])
	}
	if !strings.Contains(lines[5], "refused=999") {
		t.Errorf("the end should tell the rest: %s", lines[5])
	}
}

func TestTextNamesNobody(t *testing.T) {
	for text, want := range map[string]string{
		"dial tcp 127.0.0.1:5432: connection refused":        "dial tcp 127.0.0.1:5432: connection refused",
		"database is locked (5) (SQLITE_BUSY)":               "database is locked (5) (SQLITE_BUSY)",
		"no row for P000042":                                 "no row for [redacted]",
		"C0001 at erika.m@org01.example is gone":             "[redacted] at [redacted] is gone",
		"duplicate key (name)=(\"Erika Mustermann\")":        "duplicate key (name)=([redacted])",
		"near 'Mustermann': syntax error":                    "near [redacted]: syntax error",
		"born 1980-02-03, phone 0123 456-789, then a code 7": "born [redacted], phone [redacted], then a code 7",
		"first line\nand the rows it was about":              "first line",
		"a\xffb":                                             "a?b",
	} {
		if got := Text(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add(strings.Repeat("ä", 400))
	f.Add("P000042@\"x")
	f.Fuzz(func(t *testing.T, text string) {
		got := Text(text)
		if !utf8.ValidString(got) || len(got) > longest+len("…") || strings.Contains(got, "\n") {
			t.Fatalf("%q becomes %q", text, got)
		}
	})
}
