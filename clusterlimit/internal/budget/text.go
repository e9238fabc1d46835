package budget

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// members are those of a JSON object that this version does not know. Members of several
// versions share a budget while a service is updated, and each writes all of the value: what
// a newer one has entered stays, unless its lease goes.
type members map[string]json.RawMessage

// Parse reads what Encode wrote, in this version or in a newer one.
func Parse(data []byte) (s State, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if d.Decode(&s) != nil || len(bytes.TrimSpace(data[d.InputOffset():])) > 0 {
		if s, err = parseNewer(data); err != nil {
			return State{}, err
		}
	}
	if err := s.check(); err != nil {
		return State{}, err
	}
	return s, nil
}

// parseNewer is Parse for a text with members that this version does not know. Each
// version has written all members that this one knows, but for an empty list.
func parseNewer(data []byte) (s State, err error) {
	var leases struct {
		Leases []json.RawMessage `json:"leases"`
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return State{}, err
	}
	if err := json.Unmarshal(data, &leases); err != nil {
		return State{}, err
	}
	if s.others, err = unknown(data, "epoch", "totals", "leases"); err != nil {
		return State{}, err
	}
	for i, lease := range leases.Leases {
		if s.Leases[i].others, err = unknown(lease, "id", "name", "token", "beat", "ttl", "has", "wants"); err != nil {
			return State{}, err
		}
	}
	return s, nil
}

// unknown are the members of an object beside those that are known.
func unknown(object json.RawMessage, known ...string) (others members, err error) {
	if err := json.Unmarshal(object, &others); err != nil {
		return nil, err
	}
	maps.DeleteFunc(others, func(name string, _ json.RawMessage) bool {
		return slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, name) }) // as the package reads them
	})
	return others, nil
}

// Encode is the state as text.
func (s State) Encode() []byte {
	newer := len(s.others) > 0 || slices.ContainsFunc(s.Leases, func(l Lease) bool { return len(l.others) > 0 })
	if !newer {
		return encode(s)
	}
	leases := make([]json.RawMessage, 0, len(s.Leases))
	for _, l := range s.Leases {
		leases = append(leases, l.others.beside(encode(l)))
	}
	return s.others.beside(encode(struct {
		Epoch  uint64            `json:"epoch"`
		Totals Amounts           `json:"totals"`
		Leases []json.RawMessage `json:"leases"`
	}{s.Epoch, s.Totals, leases}))
}

func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("budget: %v", err)) // numbers, strings, and JSON that was read
	}
	return text
}

// beside adds the members to an object that has some.
func (m members) beside(object []byte) []byte {
	if len(m) == 0 {
		return object
	}
	return slices.Concat(object[:len(object)-1], []byte{','}, encode(m)[1:])
}

// UnmarshalJSON reads one number of each kind. A list of another length is of a version that
// divides other kinds: what of it would be left out, this member would give to others.
func (a *Amounts) UnmarshalJSON(text []byte) error {
	list, isList := strings.CutPrefix(string(text), "[")
	numbers := strings.Split(strings.TrimSuffix(list, "]"), ",")
	if !isList || len(numbers) != Kinds {
		return fmt.Errorf("%.40s is no list of %d amounts", text, Kinds)
	}
	for kind, number := range numbers {
		n, err := strconv.Atoi(strings.TrimSpace(number))
		if err != nil {
			return fmt.Errorf("%.40s is no list of %d amounts", text, Kinds)
		}
		a[kind] = n
	}
	return nil
}
