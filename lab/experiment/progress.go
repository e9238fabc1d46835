package experiment

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// Progress shows how far a session has come: one live line with a bar on a terminal,
// a line for each step elsewhere. A nil Progress prints nothing.
type Progress struct {
	w     io.Writer
	live  bool
	width int

	mu       sync.Mutex
	total    time.Duration // expected, of everything
	passed   time.Duration // expected, of the steps that are done
	started  time.Time
	step     string
	expect   time.Duration
	stepTime time.Time
	quit     chan struct{}
	ended    sync.WaitGroup
}

// NewProgress writes to w, in place if live. Width is the terminal's; 0: 80.
func NewProgress(w io.Writer, live bool, width int) *Progress {
	if width <= 0 {
		width = 80
	}
	return &Progress{w: w, live: live, width: width}
}

func (p *Progress) start(total time.Duration) {
	if p == nil {
		return
	}
	p.total, p.started, p.quit = total, time.Now(), make(chan struct{})
	fmt.Fprintf(p.w, "this takes about %s on an idle machine\n", rough(total))
	if !p.live {
		return
	}
	p.ended.Go(func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-p.quit:
				return
			case <-tick.C:
				p.mu.Lock()
				p.draw()
				p.mu.Unlock()
			}
		}
	})
}

func (p *Progress) begin(step string, expect time.Duration) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.step, p.expect, p.stepTime = step, expect, time.Now()
	if p.live {
		p.draw()
	}
}

// end finishes the step; note is its result.
func (p *Progress) end(note string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passed += p.expect
	if p.live {
		return
	}
	if note != "" {
		note = ": " + firstLine(note)
	}
	fmt.Fprintf(p.w, "%s%s (%v, %s left)\n", p.step, note, time.Since(p.stepTime).Round(100*time.Millisecond), rough(p.left(p.passed)))
}

// note says something about the step, which goes on.
func (p *Progress) note(text string) {
	if p == nil || p.live {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.w, "%s: %s\n", p.step, text)
}

// Write prints whole lines, above the live one.
func (p *Progress) Write(lines []byte) (int, error) {
	if p == nil {
		return len(lines), nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.live {
		fmt.Fprint(p.w, clearLine)
	}
	n, err := p.w.Write(lines)
	if p.live {
		p.draw()
	}
	return n, err
}

func (p *Progress) stop() {
	if p == nil {
		return
	}
	close(p.quit)
	p.ended.Wait()
	if p.live {
		fmt.Fprint(p.w, clearLine)
	}
}

const (
	barCells  = 24
	clearLine = "\r\x1b[K"
)

// draw repaints the live line. The caller holds mu.
func (p *Progress) draw() {
	passed := p.passed + min(time.Since(p.stepTime), p.expect)
	share := 0.0
	if p.total > 0 {
		share = min(1, float64(passed)/float64(p.total))
	}
	full := int(share * barCells)
	line := fmt.Sprintf("%s%s %3.0f %%, %s left · %s", strings.Repeat("█", full), strings.Repeat("░", barCells-full),
		100*share, rough(p.left(passed)), p.step)
	if runes := []rune(line); len(runes) >= p.width {
		line = string(runes[:p.width-1])
	}
	fmt.Fprint(p.w, clearLine+line)
}

// left is how long the rest should take at the pace so far.
func (p *Progress) left(passed time.Duration) time.Duration {
	rest, pace := p.total-passed, 1.0
	if passed > 5*time.Second {
		pace = float64(time.Since(p.started)) / float64(passed)
	}
	return max(0, time.Duration(float64(rest)*pace))
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

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
