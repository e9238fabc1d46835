package objectpool

import (
	"bytes"
	"io"
	"math"
	"testing"
	"testing/iotest"
)

func TestBuffersHaveRoomAndSizesOfTheirOwn(t *testing.T) {
	b := NewBuffers(BuffersConfig{})
	for _, n := range []int{0, 1, 512, 513, 1000, 4096, 500_000, 1 << 20, 3 << 20} {
		x := b.Get(n)
		if len(x.Bytes()) != 0 || cap(x.b) < n || n <= 1<<20 && cap(x.b) > max(2*n, smallestBuffer) {
			t.Errorf("Get(%d): len %d, cap %d", n, len(x.Bytes()), cap(x.b))
		}
		b.Put(x)
	}
	b.Put(nil)
	if s := b.Stats(); s.Gets != 9 || s.Dropped != 1 || s.InUse != 0 {
		t.Errorf("%+v", s)
	}
}

func TestOneOutlierIsNotKept(t *testing.T) {
	b := NewBuffers(BuffersConfig{})
	x := b.Get(100)
	x.Extend(64 << 20)
	b.Put(x)
	if s := b.Stats(); s.Held != 0 || s.Dropped != 1 {
		t.Errorf("buffers: %+v", s)
	}

	type answer struct{ body []byte }
	p := New(Config[answer]{Clear: func(a *answer) { clear(a.body[:cap(a.body)]); a.body = a.body[:0] }})
	a := p.Get()
	a.body = make([]byte, 64<<20)
	p.Put(a)
	if s := p.Stats(); s.Held != 0 || s.Dropped != 1 || s.InUse != 0 {
		t.Errorf("objects: %+v", s)
	}
}

func TestAReaderThatScribblesLeavesNothing(t *testing.T) {
	x := new(Buffer)
	n, err := x.ReadFrom(scribbler{})
	if n != 2 || err != nil || len(x.Bytes()) != 2 {
		t.Fatalf("%d bytes, %d read, error %v", len(x.Bytes()), n, err)
	}
	x.clear()
	mustBeZero(t, x)

	if _, err := x.ReadFrom(iotest.ErrReader(io.ErrClosedPipe)); err != io.ErrClosedPipe {
		t.Errorf("error %v", err)
	}
}

type scribbler struct{}

func (scribbler) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 7
	}
	return 2, io.EOF
}

func mustBeZero(t *testing.T, x *Buffer) {
	t.Helper()
	if i := bytes.IndexFunc(x.b[:cap(x.b)], func(c rune) bool { return c != 0 }); i >= 0 {
		t.Fatalf("byte %d of a cleared buffer of %d is %d", i, cap(x.b), x.b[:cap(x.b)][i])
	}
}

// FuzzBuffer compares Buffer with bytes.Buffer, and checks every byte once cleared.
func FuzzBuffer(f *testing.F) {
	f.Add([]byte{0, 3, 1, 200, 2, 9, 3, 0, 4, 77, 0, 255, 5, 40})
	f.Fuzz(func(t *testing.T, steps []byte) {
		x, twin := new(Buffer), new(bytes.Buffer)
		for i := 0; i+1 < len(steps); i += 2 {
			n := int(steps[i+1]) * 11
			data := bytes.Repeat([]byte{steps[i+1] | 1}, n)
			switch steps[i] % 6 {
			case 0:
				x.Write(data)
				twin.Write(data)
			case 1:
				x.WriteString(string(data))
				twin.Write(data)
			case 2:
				x.Extend(1)[0] = steps[i+1]
				twin.WriteByte(steps[i+1])
			case 3:
				x.Reset()
				twin.Reset()
			case 4:
				copy(x.Extend(n), data)
				twin.Write(data)
			case 5:
				if _, err := x.ReadFrom(bytes.NewReader(data)); err != nil {
					t.Fatal(err)
				}
				twin.Write(data)
			}
			if !bytes.Equal(x.Bytes(), twin.Bytes()) {
				t.Fatalf("after step %d: %d bytes, want %d", i/2, len(x.Bytes()), twin.Len())
			}
			_ = append(x.Bytes(), 1) // must not reach the buffer
		}
		x.clear()
		mustBeZero(t, x)
	})
}

// A buffer of 1.5 MiB, from Get or grown, was once kept although the maximum is 1 MiB.
func TestABufferAboveMaxSizeIsNotKept(t *testing.T) {
	for _, c := range []struct{ most, size int }{{0, 3 << 19}, {700_000, 900_000}, {600, 1000}, {100, 600}} {
		b := NewBuffers(BuffersConfig{MaxSize: c.most})
		b.Put(b.Get(c.size))
		x := b.Get(1)
		x.Extend(c.size)
		b.Put(x)
		if s := b.Stats(); s.Held != 0 || s.Dropped != 2 || s.InUse != 0 {
			t.Errorf("MaxSize %d, a buffer of %d: %+v", c.most, c.size, s)
		}
	}
}

// NewBuffers once doubled the size forever.
func TestBuffersOfAnySize(t *testing.T) {
	b := NewBuffers(BuffersConfig{MaxSize: math.MaxInt})
	b.Put(b.Get(10 << 20))
	if s := b.Stats(); s.Dropped != 0 || s.InUse != 0 {
		t.Errorf("%+v", s)
	}
}
