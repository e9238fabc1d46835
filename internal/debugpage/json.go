package debugpage

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/spillway-go/spillway/histogram"
)

// The JSON form of Stats. Times are in seconds, as in metrics. Empty entries are omitted.
type (
	jsonPage struct {
		Time     time.Time     `json:"time"`
		Limiters []jsonLimiter `json:"limiters"`
	}
	jsonLimiter struct {
		Name           string                  `json:"name"`
		Headline       string                  `json:"headline"` // as on the page
		ToDo           string                  `json:"to_do,omitempty"`
		Mode           string                  `json:"mode"`
		Open           bool                    `json:"open"`
		Law            string                  `json:"law"`
		State          string                  `json:"state"`
		Decisions      []jsonDecision          `json:"decisions,omitempty"`
		Pressure       *jsonPressure           `json:"pressure,omitempty"`
		Processors     *jsonProcessors         `json:"processors,omitempty"`
		Limit          int                     `json:"limit"`
		InFlight       int                     `json:"in_flight"`
		LongInFlight   int                     `json:"long_in_flight"`
		Paused         int                     `json:"paused"`
		Parked         int                     `json:"parked"`
		ByKind         map[string]jsonKind     `json:"by_kind,omitempty"`
		Oldest         float64                 `json:"oldest_in_flight_seconds"`
		OldestKind     string                  `json:"oldest_kind,omitempty"`
		Stalled        bool                    `json:"stalled"`
		Queued         int                     `json:"queued"`
		Demand         float64                 `json:"demand"`
		Lost           float64                 `json:"lost,omitempty"`
		Offered        uint64                  `json:"offered"`
		Admitted       uint64                  `json:"admitted"`
		Completed      uint64                  `json:"completed"`
		Ended          map[string]uint64       `json:"ended"`
		Cancelled      uint64                  `json:"cancelled"`
		Rejected       uint64                  `json:"rejected"`
		RejectedBy     map[string]uint64       `json:"rejected_by,omitempty"`
		WouldReject    uint64                  `json:"would_reject"`
		WouldRejectBy  map[string]uint64       `json:"would_reject_by,omitempty"`
		Estimate       string                  `json:"estimate,omitempty"`
		EstimateUnsafe bool                    `json:"estimate_unsafe"`
		ByPriority     map[string]jsonPriority `json:"by_priority,omitempty"`
		Leaked         uint64                  `json:"leaked"`
		Leaks          []jsonLeak              `json:"leaks,omitempty"`
		QueueWait      jsonTimes               `json:"queue_wait"`
		Service        jsonTimes               `json:"service"`
	}
	jsonDecision struct {
		At   float64 `json:"at_seconds"`
		From int     `json:"from"`
		To   int     `json:"to"`
		Why  string  `json:"why"`
	}
	jsonPressure struct {
		Signal string  `json:"signal"`
		Level  float64 `json:"level"`
		Cap    int     `json:"cap,omitempty"`
		By     string  `json:"by,omitempty"`
	}
	jsonProcessors struct {
		Wait     float64 `json:"wait_seconds"`
		Bound    float64 `json:"bound_seconds"`
		Admitted float64 `json:"admitted"`
	}
	jsonPriority struct {
		Offered     uint64 `json:"offered"`
		Admitted    uint64 `json:"admitted"`
		Completed   uint64 `json:"completed"`
		Rejected    uint64 `json:"rejected"`
		Cancelled   uint64 `json:"cancelled"`
		WouldReject uint64 `json:"would_reject"`
		Queued      int    `json:"queued"`
		InFlight    int    `json:"in_flight"`
	}
	jsonKind struct {
		InFlight int               `json:"in_flight"`
		Parked   int               `json:"parked"`
		Rejected uint64            `json:"rejected"`
		Ended    map[string]uint64 `json:"ended"`
		Service  jsonTimes         `json:"service"`
	}
	jsonLeak struct {
		Site     string  `json:"site"`
		Age      float64 `json:"age_seconds"`
		Priority string  `json:"priority"`
		Kind     string  `json:"kind,omitempty"`
	}
	jsonTimes struct {
		Count uint64  `json:"count"`
		Mean  float64 `json:"mean_seconds"`
		P50   float64 `json:"p50_seconds"`
		P90   float64 `json:"p90_seconds"`
		P99   float64 `json:"p99_seconds"`
		Max   float64 `json:"max_seconds"`
	}
)

func (p *Page) serveJSON(w http.ResponseWriter) {
	page := jsonPage{Time: time.Now().UTC(), Limiters: []jsonLimiter{}}
	p.mu.Lock()
	now := time.Now()
	p.observe(now)
	for i, c := range p.read() {
		one := jsonOf(&c)
		if i < len(p.watches) {
			v := viewOf(i, &p.watches[i], now)
			one.Headline, one.ToDo = plainSpaces(v.found[0].word), plainSpaces(v.found[0].todo)
		}
		page.Limiters = append(page.Limiters, one)
	}
	p.mu.Unlock()
	data, err := json.MarshalIndent(page, "", "  ")
	if err != nil {
		panic(err) // every number is finite
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(data, '\n'))
}

func jsonOf(c *picture) jsonLimiter {
	j := jsonLimiter{
		Name: c.Name, Mode: c.Mode.String(), Open: c.open, Law: c.Law, State: c.State,
		Limit: c.Limit, InFlight: c.InFlight, LongInFlight: c.LongInFlight, Paused: c.Paused, Parked: c.Parked, Oldest: c.OldestInFlight.Seconds(), OldestKind: c.OldestKind, Stalled: c.Stalled,
		Queued: c.Queued, Demand: finite(c.Demand), Lost: c.Lost,
		Offered: c.Offered, Admitted: c.Admitted, Completed: c.Completed, Cancelled: c.Cancelled,
		Rejected: c.Rejected, RejectedBy: byName(c.RejectedBy), Ended: byName(c.Ended), WouldReject: c.WouldReject, WouldRejectBy: byName(c.WouldRejectBy),
		Estimate: c.Estimate, EstimateUnsafe: c.EstimateUnsafe,
		Leaked: c.Leaked, QueueWait: timesOf(c.QueueWait), Service: timesOf(c.Service),
	}
	for _, d := range c.Decisions {
		j.Decisions = append(j.Decisions, jsonDecision{d.At.Seconds(), d.From, d.To, d.Why})
	}
	if p := c.Pressure; p.Signal != "" {
		j.Pressure = &jsonPressure{p.Signal, finite(p.Level), p.Cap, p.By}
	}
	if p := c.Processors; p.Bound > 0 {
		j.Processors = &jsonProcessors{p.Wait.Seconds(), p.Bound.Seconds(), p.Admitted}
	}
	for _, l := range c.Leaks {
		j.Leaks = append(j.Leaks, jsonLeak{l.Site, l.Age.Seconds(), l.Priority.String(), l.Kind})
	}
	for name, k := range c.ByKind {
		if j.ByKind == nil {
			j.ByKind = map[string]jsonKind{}
		}
		j.ByKind[name] = jsonKind{k.InFlight, k.Parked, k.Rejected, byName(k.Ended), timesOf(k.Service)}
	}
	for priority, s := range c.ByPriority {
		if j.ByPriority == nil {
			j.ByPriority = map[string]jsonPriority{}
		}
		j.ByPriority[priority.String()] = jsonPriority{
			s.Offered, s.Admitted, s.Completed, s.Rejected, s.Cancelled, s.WouldReject, s.Queued, s.InFlight,
		}
	}
	return j
}

// finite bounds a number to the range of JSON: a user's signal may return any number.
func finite(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return min(max(v, -math.MaxFloat64), math.MaxFloat64)
}

func byName[K interface {
	comparable
	fmt.Stringer
}](by map[K]uint64) map[string]uint64 {
	names := map[string]uint64{}
	for r, n := range by {
		names[r.String()] = n
	}
	return names
}

func timesOf(h *histogram.Histogram) jsonTimes {
	if h == nil {
		return jsonTimes{}
	}
	q := func(q float64) float64 { return float64(h.Quantile(q)) / 1e9 }
	return jsonTimes{h.Count(), h.Mean() / 1e9, q(.5), q(.9), q(.99), float64(h.Max()) / 1e9}
}
