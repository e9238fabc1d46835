package admissionhttp

import (
	"strings"
	"testing"
	"time"
)

func TestDeadlinesAsText(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "1": time.Millisecond, "00000250": 250 * time.Millisecond, "3m": 3 * time.Millisecond, "3S": 3 * time.Second,
		"3M": 3 * time.Minute, "3H": 3 * time.Hour, "3u": 3 * time.Microsecond, "3n": 3, "25H": longestDeadline,
		"99999999": longestDeadline, "99999999n": 99999999,
	} {
		if d, ok := parseDeadline(text); !ok || d != want {
			t.Errorf("%q: %v %v, want %v", text, d, ok, want)
		}
	}
	for _, text := range []string{"", " 1", "1 ", "-1", "+1", "1.5", "1e3", "123456789", "S", "1s", "1mm", "٣", "1\x00"} {
		if d, ok := parseDeadline(text); ok {
			t.Errorf("%q: %v", text, d)
		}
	}
}

func FuzzDeadline(f *testing.F) {
	for _, text := range []string{"", "0", "1500", "1S", "99999999H", "123456789", "1s", "-1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, ok := parseDeadline(text)
		if d < 0 || d > longestDeadline || !ok && d != 0 {
			t.Fatalf("%q: %v %v", text, d, ok)
		}
		if ok && (len(text) > 9 || strings.Trim(text, "0123456789") != strings.TrimLeft(text, "0123456789")) {
			t.Fatalf("%q was taken", text)
		}
	})
}

func FuzzAccept(f *testing.F) {
	for _, line := range []string{"", "text/event-stream", "text/html, TEXT/Event-Stream;q=0.5", "text/event-streams", ",,;"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if accepts(line) && !strings.Contains(strings.ToLower(line), "text/event-stream") {
			t.Fatalf("%q", line)
		}
		if streams(line) && !strings.Contains(strings.ToLower(line), "event-stream") && !strings.Contains(strings.ToLower(line), "x-mixed-replace") {
			t.Fatalf("%q", line)
		}
	})
}
