package debugpage

import (
	"strings"
	"time"

	"github.com/spillway-go/spillway/limiter"
)

// Headline is what the page says first of a limiter.
type Headline struct {
	Bad        bool   // a trouble, not only a sign of one
	Word, ToDo string // the word is "calm" if there is nothing to say
	Key        string // the trouble, without figures and names; "refusal" if work is refused
}

// Headlines returns a function that looks at a limiter and returns the headline. It is not safe for concurrent
// use. Looks may be ten seconds apart.
func Headlines(lim *limiter.Limiter) func(now time.Time) Headline {
	page := newPage(1, func() []picture { return []picture{pictureOf(lim)} })
	page.observe(time.Now())
	return func(now time.Time) Headline {
		page.observe(now)
		v := viewOf(0, &page.watches[0], now)
		f := v.found[0]
		return Headline{Bad: f.mood == "bad", Word: plainSpaces(f.word), ToDo: plainSpaces(f.todo), Key: f.key}
	}
}

// plainSpaces is text for a log or for JSON.
func plainSpaces(s string) string { return strings.ReplaceAll(s, nbsp, " ") }
