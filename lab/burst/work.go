package burst

import (
	"time"

	"github.com/spillway-go/spillway/objectpool"
)

// Work is one unit of the published work: a buffer that is touched on every page,
// then a wait.
type Work struct {
	Bytes int           // of the buffer
	Wait  time.Duration // of processing after that
}

// PublishedWork is the unit of the published burst.
var PublishedWork = Work{Bytes: 500 << 10, Wait: 20 * time.Millisecond}

const page = 4096

// Buffer is the memory of one job. Only touch writes to it.
type Buffer []byte

func (b Buffer) touch() {
	for i := 0; i < len(b); i += page {
		b[i] = 1
	}
}

// clear undoes touch: its cost depends on what was written, not on the size.
func (b Buffer) clear() {
	for i := 0; i < len(b); i += page {
		b[i] = 0
	}
}

// Memory provides the buffers of jobs: fresh or reused.
type Memory struct {
	size int
	pool *objectpool.Pool[Buffer] // nil: a fresh buffer each time
}

// NewMemory returns a Memory of buffers of that size.
func NewMemory(size int, reuse bool) *Memory {
	m := &Memory{size: size}
	if reuse {
		m.pool = objectpool.New(objectpool.Config[Buffer]{
			New: func() *Buffer {
				b := make(Buffer, size)
				return &b
			},
			Clear: func(b *Buffer) { b.clear() },
		})
	}
	return m
}

// Take returns a touched buffer. It is the part of the work that uses the processor.
func (m *Memory) Take() *Buffer {
	var b *Buffer
	if m.pool != nil {
		b = m.pool.Get()
	} else {
		fresh := make(Buffer, m.size)
		b = &fresh
	}
	b.touch()
	return b
}

// Give returns a buffer, which must not be used any more.
func (m *Memory) Give(b *Buffer) {
	if m.pool != nil {
		m.pool.Put(b)
	}
}

// ReuseRate is the true share of buffers that were reused; -1 without reuse.
func (m *Memory) ReuseRate() float64 {
	if m.pool == nil {
		return -1
	}
	return m.pool.Stats().ReuseRate()
}
