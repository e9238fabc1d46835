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

// members are the members of a JSON object that this version does not know. During an update of a
// service, several versions share a budget, and each replica writes the whole value. Entries of a
// newer version stay, unless their lease is removed.
type members map[string]json.RawMessage

// Parse reads the output of Encode, of this version or of a newer one.
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

// parseNewer is Parse for a text with members that this version does not know. Every version writes
// all members that this version knows, except for an empty list.
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

// unknown returns the members of an object that are not in known.
func unknown(object json.RawMessage, known ...string) (others members, err error) {
	if err := json.Unmarshal(object, &others); err != nil {
		return nil, err
	}
	maps.DeleteFunc(others, func(name string, _ json.RawMessage) bool {
		return slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, name) }) // like encoding/json
	})
	return others, nil
}

// Encode returns the state as text.
func (s State) Encode() []byte {
	newer := len(s.others) > 0 || slices.ContainsFunc(s.Leases, func(l Lease) bool { return len(l.others) > 0 })
	if !newer {
		return encode(s)
	}
	leases := make([]json.RawMessage, 0, len(s.Leases))
	for _, l := range s.Leases {
		leases = append(leases, l.others.appendTo(encode(l)))
	}
	return s.others.appendTo(encode(struct {
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

// appendTo adds the members to a nonempty object.
func (m members) appendTo(object []byte) []byte {
	if len(m) == 0 {
		return object
	}
	return slices.Concat(object[:len(object)-1], []byte{','}, encode(m)[1:])
}

// UnmarshalJSON reads one number of each kind. A list of another length comes from a version that
// divides other kinds. It is an error: this member would give dropped amounts to other members.
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
