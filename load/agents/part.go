package agents

import "errors"

const (
	partSize  = 256 << 10 // bytes: with its JSON well below what a NATS server takes
	mostParts = 4096      // 1 GiB
)

var errParts = errors.New("a part of a text is missing")

// part is a piece of a text too long for one message.
type part struct {
	Number int    `json:"number"` // from 0
	Of     int    `json:"of"`
	Bytes  []byte `json:"bytes"`
}

func (p *part) valid() bool {
	return p.Number >= 0 && p.Number < p.Of && p.Of <= mostParts && len(p.Bytes) <= partSize
}

// split divides a text; an empty one is a part, too.
func split(text []byte) (parts []part) {
	of := max(1, (len(text)+partSize-1)/partSize)
	for i := range of {
		parts = append(parts, part{i, of, text[i*partSize : min((i+1)*partSize, len(text))]})
	}
	return parts
}

// collector puts a text together from its parts in their order. A part may come twice,
// if the answer to it was lost.
type collector struct {
	of   int
	next int
	text []byte
}

// add returns the text once it is complete.
func (c *collector) add(p part) (text []byte, complete bool, err error) {
	switch {
	case !p.valid() || c.next > 0 && p.Of != c.of || p.Number > c.next || p.Number < c.next-1:
		return nil, false, errParts
	case p.Number == c.next:
		c.of, c.next = p.Of, c.next+1
		c.text = append(c.text, p.Bytes...)
	}
	return c.text, c.next == c.of, nil
}
