package audit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
)

// The first byte of what is hashed, without a Source and with one.
const (
	formatVersion = 1
	withSource    = 2
)

// sealVersion is the first byte of what a head's seal is over; no record begins so.
const sealVersion = 0x81

// Key makes hashes that only those who have it can compute. Without one, everybody can.
type Key []byte

// ErrHead reports a Head whose seal does not fit: it was altered, or sealed with
// another key.
var ErrHead = errors.New("audit: the head of the chain was altered, or it was made with another key")

// ErrTip reports that a chain no longer ends as it did. Nothing is put behind it: that
// would hide what was done to it.
var ErrTip = errors.New("audit: the end of the chain was altered or removed, or the storage is an earlier copy of itself: verify it")

// chain computes hashes. It is for one goroutine.
type chain struct {
	hash hash.Hash
	buf  []byte // what is hashed
	out  []byte
}

func newChain(key Key) *chain {
	if len(key) == 0 {
		return &chain{hash: sha256.New()}
	}
	return &chain{hash: hmac.New(sha256.New, key)}
}

// sum returns the hash of the record of that number, behind previous, that says e.
func (c *chain) sum(sequence int64, previous Hash, e *Event) Hash {
	b := append(c.buf[:0], formatVersion)
	b = appendInt(b, sequence)
	b = append(b, previous[:]...)
	b = appendInt(b, e.Time.UnixMicro())
	for _, s := range [...]string{e.RequestID, e.Subject, e.Role, e.Action, e.Resource, string(e.Outcome), e.Route} {
		b = appendText(b, s)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(e.Patients)))
	for _, id := range e.Patients {
		b = appendText(b, id)
	}
	b = appendInt(b, e.More)
	b = appendInt(b, int64(e.Status))
	unread := byte(0)
	if e.Unread {
		unread = 1
	}
	b = append(b, unread)
	b = appendInt(b, e.Count)
	if e.Source != "" {
		b[0] = withSource
		b = appendText(b, e.Source)
	}
	return c.digest(b)
}

// seal returns the seal of a head.
func (c *chain) seal(h Head) Hash {
	b := append(c.buf[:0], sealVersion)
	b = appendInt(b, h.Sequence)
	b = append(b, h.Hash[:]...)
	return c.digest(b)
}

func (c *chain) digest(b []byte) (sum Hash) {
	c.buf = b
	c.hash.Reset()
	c.hash.Write(b)
	c.out = c.hash.Sum(c.out[:0])
	copy(sum[:], c.out)
	return sum
}

// fits reports whether the head is one that this key has sealed.
func (c *chain) fits(h Head) bool {
	if h == (Head{}) {
		return true
	}
	seal := c.seal(h)
	return hmac.Equal(h.Seal[:], seal[:])
}

// extend appends to dst the records of events behind head, and returns the new head.
func (c *chain) extend(dst *Block, head Head, events []Event) Head {
	for i := range events {
		head.Sequence++
		head.Hash = c.sum(head.Sequence, head.Hash, &events[i])
		dst.add(head.Sequence, &events[i], head.Hash)
	}
	head.Seal = c.seal(head)
	return head
}

// ends reports whether the last record that is stored is the one that the head stands
// for. All the others are for Verify.
func (c *chain) ends(t Tip) bool {
	if t.Head == (Head{}) || t.Last.Records == nil {
		return t.Head == (Head{}) && t.Last.Records == nil
	}
	records, err := t.Last.end()
	if err != nil {
		return false
	}
	last := &records[len(records)-1]
	if len(records) == 2 && last.Hash != c.sum(last.Sequence, records[0].Hash, &last.Event) {
		return false
	}
	return last.Sequence == t.Head.Sequence && last.Hash == t.Head.Hash
}

func appendInt(b []byte, n int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(n)) }

func appendText(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
	return append(b, s...)
}
