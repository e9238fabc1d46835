package route

import "testing"

func TestNothingIsLeftInAnOutput(t *testing.T) {
	var o output
	o.buf.WriteString("secret")
	out := o.bytes()
	o.clear()
	if string(out) != "\x00\x00\x00\x00\x00\x00" || len(o.bytes()) != 0 {
		t.Errorf("%q", out)
	}
}
