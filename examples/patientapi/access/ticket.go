package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"io"
)

// A ticket is the name of an export that belongs to the caller who has started it. It
// cannot be guessed, and whose it is can be told from it alone: nothing has to be looked
// for on behalf of anybody else.
const (
	nonceSize = 16 // bytes
	ownerSize = 16
)

// NewTicket returns a new ticket of that subject.
func NewTicket(subject string) string {
	nonce := make([]byte, nonceSize, nonceSize+ownerSize)
	rand.Read(nonce) // it does not fail
	return hex.EncodeToString(append(nonce, owner(nonce, subject)...))
}

func owner(nonce []byte, subject string) []byte {
	h := sha256.New()
	h.Write(nonce)
	_, _ = io.WriteString(h, subject) // it does not fail
	return h.Sum(nil)[:ownerSize]
}

// Ticket reports whether text looks like a ticket of anybody.
func Ticket(text string) bool {
	raw, err := hex.DecodeString(text)
	return err == nil && len(raw) == nonceSize+ownerSize && hex.EncodeToString(raw) == text
}

// Holds reports whether p may use what has that ticket: it was made for p's subject, who
// may still export everybody.
func Holds(p Principal, ticket string) bool {
	if p.Subject == "" || !Ticket(ticket) || !Allowed(p, Patients, ExportAll, "") {
		return false
	}
	raw, _ := hex.DecodeString(ticket) // it is one
	return subtle.ConstantTimeCompare(raw[nonceSize:], owner(raw[:nonceSize], p.Subject)) == 1
}
