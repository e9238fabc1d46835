package admissionhttp

import (
	"log/slog"
	"time"

	"github.com/spillway-go/spillway/internal/debugpage"
	"github.com/spillway-go/spillway/internal/inside"
	"github.com/spillway-go/spillway/limiter"
)

// troubles logs what the page of a limiter would say first, when that is bad: at the onset, each minute, and
// once it is over. What is refused is left to package shedlog.
type troubles struct {
	logger   *slog.Logger
	name     string
	headline func(time.Time) debugpage.Headline
	said     string // key of the trouble that was logged last; empty: none
	calm     int    // looks without a trouble since
	began    time.Time
	at       time.Time // time of the last line
}

const (
	lookForTrouble = 10 * time.Second
	troubleEvery   = time.Minute
	calmLooks      = 3 // looks without a trouble until the trouble is over
)

// logTroubles has whoever uses lim look for trouble.
func logTroubles(logger *slog.Logger, lim *limiter.Limiter) {
	t := &troubles{logger: logger, name: lim.Name(), headline: debugpage.Headlines(lim)}
	inside.Of(lim).Every(lookForTrouble, func() { t.now(time.Now()) })
}

// now looks and logs. A request must not wait for the logger.
func (t *troubles) now(now time.Time) {
	h := t.headline(now)
	key := h.Key
	if !h.Bad || key == "refusal" {
		key = ""
	}
	if t.calm++; key != "" {
		t.calm = 0
	}
	switch {
	case key == "" && (t.said == "" || t.calm < calmLooks):
	case key == "":
		lasted := now.Sub(t.began).Round(time.Second)
		t.said = ""
		go t.logger.Info("trouble is over", "limiter", t.name, "after", lasted.String())
	case key != t.said || now.Sub(t.at) >= troubleEvery:
		if t.said == "" {
			t.began = now
		}
		t.said, t.at = key, now
		go t.logger.Warn("trouble: "+h.Word, "limiter", t.name, "to_do", h.ToDo)
	}
}
