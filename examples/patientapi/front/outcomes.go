package front

import (
	"net/http"
	"strconv"
	"time"
)

// Outcomes counts requests by what became of them. Probes and pages are not counted.
type Outcomes struct {
	OK        uint64 `json:"ok"`
	Rejected  uint64 `json:"rejected"`  // 503
	BadInput  uint64 `json:"bad_input"` // 4xx, unknown patients too
	Error     uint64 `json:"error"`     // 5xx, broken off
	Timeout   uint64 `json:"timeout"`   // 504
	Abandoned uint64 `json:"abandoned"` // the client left first
}

const (
	outcomeOK = iota
	outcomeRejected
	outcomeBadInput
	outcomeError
	outcomeTimeout
	outcomeAbandoned
	outcomeKinds
)

// unmatched is the route of requests that no route matches.
const unmatched = "(none)"

func (f *Front) count(route string, status int, took time.Duration) {
	kind := outcomeError
	switch {
	case status == http.StatusServiceUnavailable:
		kind = outcomeRejected
	case status == http.StatusGatewayTimeout:
		kind = outcomeTimeout
	case status == statusGone:
		kind = outcomeAbandoned
	case status >= 200 && status < 400:
		kind = outcomeOK
	case status >= 400 && status < 500:
		kind = outcomeBadInput
	}
	f.outcomes[kind].Add(1)
	code := "aborted"
	if status > 0 {
		code = strconv.Itoa(status)
	}
	f.served.WithLabelValues(route, code).Observe(took.Seconds())
}

// Outcomes returns the counts so far, of all APIs.
func (f *Front) Outcomes() Outcomes {
	n := func(kind int) uint64 { return f.outcomes[kind].Load() }
	return Outcomes{
		OK: n(outcomeOK), Rejected: n(outcomeRejected), BadInput: n(outcomeBadInput),
		Error: n(outcomeError), Timeout: n(outcomeTimeout), Abandoned: n(outcomeAbandoned),
	}
}
