package encode

import "testing"

func TestNothingIsLeftInAnOutput(t *testing.T) {
	var o Output
	o.buf.WriteString("secret")
	out := o.Bytes()
	o.Clear()
	if string(out) != "\x00\x00\x00\x00\x00\x00" || len(o.Bytes()) != 0 {
		t.Errorf("%q", out)
	}
}
