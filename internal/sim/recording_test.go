package sim

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Recording is what a real backend once did. The recorder is lab/contestants/record.
type Recording struct {
	Levels []Level   // by workers
	Series []float64 // answers in each Interval at a constant number of workers, relative to their mean
	Step   []float64 // the same after a step from 1 worker to StepTo, relative to the rate of that level
	StepTo int

	playing []Level // as Levels, for each number of workers from 1
}

// Level is what the backend did for so many workers, each of which asked again as soon as it had its answer.
type Level struct {
	Workers   int
	Rate      float64   // answers a second
	Latencies []float64 // milliseconds: means of equal parts of the answers, the quickest first
}

// Interval is how long each value of a Series and of a Step is for.
const Interval = 50 * time.Millisecond

// ParseRecording reads what the recorder wrote.
func ParseRecording(text string) (*Recording, error) {
	r := &Recording{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if words[0] == "#" {
			continue
		}
		var values []float64
		for _, word := range words[1:] {
			v, err := strconv.ParseFloat(word, 64)
			if err != nil {
				return nil, err
			}
			values = append(values, v)
		}
		switch words[0] {
		case "level":
			r.Levels = append(r.Levels, Level{int(values[0]), values[1], values[2:]})
		case "series":
			r.Series = values[1:]
		case "step":
			r.StepTo, r.Step = int(values[0]), values[1:]
		default:
			return nil, fmt.Errorf("a line begins with %q", words[0])
		}
	}
	r.interpolate()
	return r, nil
}

// interpolate fills playing. The sizes of pieces of work in it have the mean 1.
func (r *Recording) interpolate() {
	for i, from := range r.Levels[:len(r.Levels)-1] {
		to := r.Levels[i+1]
		for n := from.Workers; n < to.Workers; n++ {
			r.playing = append(r.playing, between(from, to, n))
		}
	}
	last := r.Levels[len(r.Levels)-1]
	r.playing = append(r.playing, between(last, last, last.Workers))
}

func between(from, to Level, n int) Level {
	part := float64(n-from.Workers) / max(float64(to.Workers-from.Workers), 1)
	at := Level{n, from.Rate + part*(to.Rate-from.Rate), make([]float64, len(from.Latencies))}
	for q := range at.Latencies {
		at.Latencies[q] = (1-part)*from.Latencies[q]/mean(from.Latencies) + part*to.Latencies[q]/mean(to.Latencies)
	}
	return at
}

func mean(values []float64) (m float64) {
	for _, v := range values {
		m += v / float64(len(values))
	}
	return m
}

// at is what the backend does while n calls run. With more than were recorded, as much is done as with the most.
func (r *Recording) at(n int) *Level { return &r.playing[min(n, len(r.playing))-1] }

// Best is the highest recorded rate.
func (r *Recording) Best() (best float64) {
	for _, l := range r.Levels {
		best = max(best, l.Rate)
	}
	return best
}

// Scenario is a run in front of the recorded backend, which the policy protects. In the noise the series is played
// again and again.
func (r *Recording) Scenario(p Policy, d time.Duration, noise bool) Scenario {
	s := Scenario{Duration: d, Backend: Degrading(math.MaxInt, 0)}
	s.Classes = []Class{{Service: Uniform(0, time.Second)}} // a place among the latencies
	s.Policy = Policy{build: func(at *replica) (admitter, error) {
		at.backend = &playing{shared: at.backend.(*shared), recording: r}
		return p.build(at)
	}}
	for i := 0; noise && time.Duration(i)*Interval < d; i++ {
		// Changes of speed cannot stop the backend.
		s.Changes = append(s.Changes, Change{At: time.Duration(i) * Interval, Speed: max(r.Series[i%len(r.Series)], .02)})
	}
	return s
}

// playing is a recorded backend. While n calls run, their work together progresses at the recorded rate of n
// workers. How much work a call is, follows the latencies that were recorded for as many workers as run when the
// call starts. So n workers see the recorded latencies.
type playing struct {
	*shared

	recording *Recording
	noise     float64 // factor of the rate
}

func (b *playing) start(c *call) bool {
	b.advance()
	sizes := b.recording.at(len(b.running) + 1).Latencies
	place := min(max(c.work.Seconds()*float64(len(sizes))-.5, 0), float64(len(sizes)-1))
	low := int(place)
	high := min(low+1, len(sizes)-1)
	size := sizes[low] + (place-float64(low))*(sizes[high]-sizes[low])
	c.work = time.Duration(size * float64(time.Second))
	b.serve(c)
	b.tune()
	return true
}

func (b *playing) leave(c *call) bool {
	b.advance()
	b.running.remove(c.index)
	b.tune()
	return true
}

func (b *playing) finish(*call) {
	b.advance()
	for len(b.running) > 0 && b.running[0].until <= b.clock+1 {
		c := b.running[0]
		b.running.remove(0)
		b.tune()
		b.run.ended(c) // may start other calls
	}
	b.tune()
}

func (b *playing) change(_ int, speed float64) {
	b.advance()
	b.noise = speed
	b.tune()
}

// tune sets the speed of each call to that of as many as run. A call of the mean size is a second of work.
func (b *playing) tune() {
	if n := len(b.running); n > 0 {
		b.speed = b.noise * b.recording.at(n).Rate / float64(n)
	}
	b.arm()
}
