package httpapi

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestSheddingLogsOneLineASecond(t *testing.T) {
	var out bytes.Buffer
	l := shedLog{logger: slog.New(slog.NewTextHandler(&out, nil))}
	start := time.Unix(1000, 0)
	for i := range 5000 { // five seconds at 1,000/s
		l.add(start.Add(time.Duration(i)*time.Millisecond), "limiter")
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 5 {
		t.Fatalf("%d lines in five seconds:\n%s", len(lines), out.String())
	}
	if !strings.Contains(lines[4], "refused=1000") {
		t.Errorf("a line should count what it stands for: %s", lines[4])
	}
}

func FuzzRequestID(f *testing.F) {
	f.Add("abc")
	f.Add("a\nb")
	f.Fuzz(func(t *testing.T, id string) {
		if saneRequestID(id) && (len(id) > 128 || strings.ContainsAny(id, " \t\r\n\"'<>=\\/\x00")) {
			t.Fatalf("%q would go into the log", id)
		}
	})
}
