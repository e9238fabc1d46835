package experiment

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// Progress shows how far a session has come: one live line with a bar on a terminal,
// a line for each step elsewhere.
type Progress struct {
	w     io.Writer
	live  bool
	width int

	mu      sync.Mutex
	started time.Time     // zero: there is no live line, before start or after stop
	active  []*activity   // the earliest first
	rest    time.Duration // of what comes after them
}

// activity is a step that has begun.
type activity struct {
	label  string
	began  time.Time
	expect time.Duration
}

// NewProgress writes to w, in place if live. Width is the terminal's; 0: 80.
func NewProgress(w io.Writer, live bool, width int) *Progress {
	if width <= 0 {
		width = 80
	}
	return &Progress{w: w, live: live, width: width}
}

// start says how long everything should take. Call stop at the end.
func (p *Progress) start(total time.Duration) (stop func()) {
	fmt.Fprintf(p.w, "this takes about %s on an idle machine\n", rough(total))
	p.started, p.rest = time.Now(), total
	if !p.live {
		return func() {}
	}
	var ended sync.WaitGroup
	quit := make(chan struct{})
	ended.Go(func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				p.mu.Lock()
				p.draw()
				p.mu.Unlock()
			}
		}
	})
	return func() {
		close(quit)
		ended.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.started = time.Time{}
		fmt.Fprint(p.w, clearLine)
	}
}

// begin starts a step that should take so long, and what comes after it the rest.
func (p *Progress) begin(label string, expect, rest time.Duration) *activity {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := &activity{label, time.Now(), expect}
	p.active, p.rest = append(p.active, a), rest
	if p.live {
		p.draw()
	}
	return a
}

// end finishes the step; note is its result, and the rest what is left now that it is
// known how long the step took.
func (p *Progress) end(a *activity, note string, rest time.Duration) {
	p.drop(a)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rest = rest; p.live {
		return
	}
	if note != "" {
		line, _, _ := strings.Cut(note, "\n")
		note = ": " + line
	}
	fmt.Fprintf(p.w, "%s%s (%v, %s left)\n", a.label, note, time.Since(a.began).Round(100*time.Millisecond), rough(rest))
}

// drop ends the step without a word. For one that has ended it does nothing.
func (p *Progress) drop(a *activity) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active = slices.DeleteFunc(p.active, func(b *activity) bool { return b == a })
}

// note says something about a step, which goes on.
func (p *Progress) note(label, text string) {
	if !p.live {
		fmt.Fprintf(p, "%s: %s\n", label, text)
	}
}

// Write prints whole lines, above the live one.
func (p *Progress) Write(lines []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.live {
		return p.w.Write(lines)
	}
	defer p.draw()
	fmt.Fprint(p.w, clearLine)
	return p.w.Write(lines)
}

const (
	barCells  = 24
	clearLine = "\r\x1b[K"
)

// draw repaints the live line. The caller holds mu.
func (p *Progress) draw() {
	if p.started.IsZero() {
		return
	}
	var labels []string
	var longest time.Duration // until what is going on should have ended
	for _, a := range p.active {
		labels, longest = append(labels, a.label), max(longest, a.expect-time.Since(a.began))
	}
	passed, left, share := time.Since(p.started), p.rest+longest, 0.0
	if left > 0 || passed > 0 {
		share = float64(passed) / float64(passed+left)
	}
	full := int(share * barCells)
	line := []rune(fmt.Sprintf("%s%s %3.0f %%, %s left · %s", strings.Repeat("█", full), strings.Repeat("░", barCells-full), 100*share, rough(left), strings.Join(labels, " | ")))
	fmt.Fprint(p.w, clearLine+string(line[:min(len(line), p.width-1)]))
}

// rough is a duration in rounded words.
func rough(d time.Duration) string {
	if d < time.Minute {
		return d.Round(time.Second).String()
	}
	d = d.Round(10 * time.Second)
	if d%time.Minute == 0 {
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
}
