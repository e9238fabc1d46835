package objectpool

import (
	"io"
	"math"
	"math/bits"
	"sync/atomic"
)

const (
	smallestBuffer = 512
	largestBuffer  = 1 << 20
	leastRead      = 4 << 10 // bytes that ReadFrom offers a reader at once
)

// BuffersConfig bounds the memory that a Buffers may keep.
type BuffersConfig struct {
	MaxIdleBytes int // like Config.MaxIdleBytes, for the buffers of all sizes together
	MaxSize      int // bytes above which a buffer is never kept; zero means 1 MiB
}

const useNewBuffers = "objectpool: these Buffers were not made: use NewBuffers"

// Buffers hands out empty byte buffers, kept by size in powers of two. It is safe for concurrent
// use. Create a Buffers with NewBuffers: without it, Get and Put panic. A Buffers must not be
// copied.
type Buffers struct {
	classes []*Pool[Buffer] // of smallestBuffer << index bytes
	maxSize int

	large  counter       // Gets above the largest class
	beyond *Pool[Buffer] // keeps nothing; drops buffers that are too large for the classes
}

// NewBuffers returns a Buffers that holds no buffer yet. It starts nothing.
func NewBuffers(cfg BuffersConfig) *Buffers {
	if cfg.MaxIdleBytes == 0 {
		cfg.MaxIdleBytes = defaultIdleBytes
	}
	if cfg.MaxSize <= 0 {
		cfg.MaxSize = largestBuffer
	}
	left := new(atomic.Int64)
	left.Store(toShare(cfg.MaxIdleBytes))
	b := &Buffers{maxSize: cfg.MaxSize, beyond: newPool(Config[Buffer]{Clear: (*Buffer).clear}, 0, left)}
	for size := smallestBuffer; size <= cfg.MaxSize && size <= math.MaxInt/2; size *= 2 {
		b.classes = append(b.classes, newPool(Config[Buffer]{
			New:     func() *Buffer { return &Buffer{b: make([]byte, 0, size)} },
			Clear:   (*Buffer).clear,
			MaxSize: 2 * size,
		}, cfg.MaxIdleBytes/4, left)) // the locals of all classes hold less than one local of four times the size
	}
	return b
}

// classOf returns the smallest class whose buffers have room for n bytes.
func classOf(n int) int { return bits.Len(uint(max(n, 1)-1) / smallestBuffer) }

// Get returns an empty buffer with room for at least n bytes, all of them zero. The buffer belongs
// to the caller until Put.
func (b *Buffers) Get(n int) *Buffer {
	if c := classOf(n); c < len(b.classes) {
		return b.classes[c].Get()
	}
	if b.beyond == nil {
		panic(useNewBuffers)
	}
	b.large.add()
	return &Buffer{b: make([]byte, 0, n)}
}

// Put clears the written bytes of a buffer and gives the buffer to a later Get, for the size to which
// it has grown. After Put, the caller must not use the buffer, nor slices that Bytes or Extend
// returned. Put drops a buffer that is too large. Put of nil does nothing.
func (b *Buffers) Put(x *Buffer) {
	if x == nil || cap(x.b) < smallestBuffer {
		return
	}
	if c := bits.Len(uint(cap(x.b))/smallestBuffer) - 1; c < len(b.classes) && cap(x.b) <= b.maxSize {
		b.classes[c].Put(x)
		return
	}
	if b.beyond == nil {
		panic(useNewBuffers)
	}
	b.beyond.drop(x)
}

// Stats returns the sums over all sizes. A buffer that grew counts as a Get of one size and as a
// Put of another.
func (b *Buffers) Stats() Stats {
	if b.beyond == nil {
		return Stats{}
	}
	dropped := b.beyond.dropped.load()
	sum := Stats{Gets: b.large.load(), Dropped: dropped}
	puts := dropped
	for _, c := range b.classes {
		s := c.Stats()
		sum.Gets += s.Gets
		sum.Reused += s.Reused
		puts += c.tier.tally().puts + s.Dropped
		sum.Dropped += s.Dropped
		sum.Held += s.Held
	}
	sum.InUse = max(0, int(sum.Gets)-int(puts))
	return sum
}

// Buffer is a growing sequence of bytes. All writes to its memory go through its methods, so
// clearing costs time for the written bytes, not for the capacity. The zero Buffer is empty and
// ready to use. A Buffer is not safe for concurrent use.
type Buffer struct {
	b     []byte
	dirty int // leading bytes of the memory that may be non-zero; the contents may always be
}

func (x *Buffer) clear() {
	clear(x.b[:max(x.dirty, len(x.b))])
	x.b, x.dirty = x.b[:0], 0
}

// Bytes returns the contents. The contents are valid until the next write or Put. Appending to the
// result copies it.
func (x *Buffer) Bytes() []byte { return x.b[:len(x.b):len(x.b)] }

// Reset makes the buffer empty.
func (x *Buffer) Reset() {
	x.dirty = max(x.dirty, len(x.b))
	x.b = x.b[:0]
}

// Extend appends n bytes and returns them, for the caller to write. The bytes are zero, or have the
// values that they had before a Reset, or that the reader of a ReadFrom left in them.
func (x *Buffer) Extend(n int) []byte {
	at := len(x.b)
	x.grow(n)
	more := x.b[at : at+n : at+n]
	x.b = x.b[:at+n]
	return more
}

// grow makes room for n more bytes. Memory that becomes too small is left to the garbage collector,
// because the caller may still use it.
func (x *Buffer) grow(n int) {
	need := len(x.b) + n
	if need <= cap(x.b) {
		return
	}
	old := x.b
	x.b = make([]byte, len(old), smallestBuffer<<classOf(need))
	x.dirty = 0
	copy(x.b, old)
}

// Write implements io.Writer. It never fails.
func (x *Buffer) Write(p []byte) (int, error) { return copy(x.Extend(len(p)), p), nil }

// WriteString implements io.StringWriter. It never fails.
func (x *Buffer) WriteString(s string) (int, error) { return copy(x.Extend(len(s)), s), nil }

// ReadFrom implements io.ReaderFrom: it appends the data of r, until EOF.
func (x *Buffer) ReadFrom(r io.Reader) (int64, error) {
	began := len(x.b)
	for {
		at := len(x.b)
		x.grow(1)
		// A reader may write to the whole offer, even if it returns a smaller count. All of the offer
		// must then be cleared, so the offer is not much longer than the contents.
		offer := x.b[at:min(cap(x.b), at+max(at, leastRead))]
		x.dirty = max(x.dirty, at+len(offer))
		n, err := r.Read(offer)
		x.b = x.b[:at+n]
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			return int64(len(x.b) - began), err
		}
	}
}
