package results

import "time"

// Session is the outcome of several experiments that were run as one: the results.json
// of the folder above theirs.
type Session struct {
	Schema   string    `json:"schema"`
	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended,omitzero"` // zero: it goes on, or it was killed
	Machine  Machine   `json:"machine"`
	Revision string    `json:"revision"` // of the lab
	Command  []string  `json:"command"`
	Seed     uint64    `json:"seed"`
	Parts    []Results `json:"parts"` // one for each experiment
	Advice   []Advice  `json:"advice,omitempty"`
}

// Advice answers a question that an engineer has, as far as claims were decided.
type Advice struct {
	Question string `json:"question"`
	Text     string `json:"text"`
	Source   string `json:"source,omitempty"` // who advises it; empty: nobody but us
	Verdict  string `json:"verdict"`          // supported, contradicted, undecided or not judged, on this machine
	Cites    []Cite `json:"cites,omitempty"`  // what it rests on, of what was judged
}

// Cite is a claim, or a part of one, with what was found.
type Cite struct {
	Claim   string `json:"claim"` // "H2", or "H2/refused" for a part
	Verdict string `json:"verdict"`
	Figure  string `json:"figure,omitempty"` // with its interval
}
