package wire

import "testing"

func TestNothingIsLeftInAScratch(t *testing.T) {
	var s Scratch
	s.Body = append(s.Body, "secret"...)
	s.Faults = append(s.Faults, Fault{Detail: "secret"})
	s.path = append(s.path, step{name: "secret"})
	body, faults, path := s.Body[:6], s.Faults[:1], s.path[:1]
	s.Clear()
	if string(body) != "\x00\x00\x00\x00\x00\x00" || faults[0] != (Fault{}) || path[0] != (step{}) {
		t.Errorf("%q %v %v", body, faults, path)
	}
}
