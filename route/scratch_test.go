package route

import "testing"

func TestNothingIsLeftInAScratch(t *testing.T) {
	var s scratch
	s.body = append(s.body, "secret"...)
	s.faults = append(s.faults, wireFault{Detail: "secret"})
	s.path = append(s.path, step{name: "secret"})
	body, faults, path := s.body[:6], s.faults[:1], s.path[:1]
	s.clear()
	if string(body) != "\x00\x00\x00\x00\x00\x00" || faults[0] != (wireFault{}) || path[0] != (step{}) {
		t.Errorf("%q %v %v", body, faults, path)
	}
}
