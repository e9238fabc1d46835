package burst

import (
	"time"

	"github.com/spillway-go/spillway/objectpool"
)

// Work is one unit of the published work: a buffer that is touched on every page,
// then a wait.
type Work struct {
	Bytes int           `group:"Size" default:"512000" help:"The size of a job's buffer."`
	Wait  time.Duration `group:"Size" default:"20ms" help:"How long a job takes after it has touched its buffer."`
}

// PublishedWork is the unit of the published burst.
var PublishedWork = Work{Bytes: 500 << 10, Wait: 20 * time.Millisecond}

const page = 4096

// Buffer is the memory of one job. Nothing but the first byte of each page is written.
type Buffer []byte

// fill writes every page. With 0 it undoes that: it costs what was written, not the size.
func (b Buffer) fill(with byte) {
	for i := 0; i < len(b); i += page {
		b[i] = with
	}
}

// Memory provides the buffers of jobs: fresh or reused.
type Memory struct {
	take      func() *Buffer
	Give      func(*Buffer)  // takes a buffer back, which must not be used any more
	ReuseRate func() float64 // the true share of buffers that were reused; -1 without reuse
}

// NewMemory returns a Memory of buffers of that size.
func NewMemory(size int, reuse bool) *Memory {
	fresh := func() *Buffer { b := make(Buffer, size); return &b }
	if !reuse {
		return &Memory{take: fresh, Give: func(*Buffer) {}, ReuseRate: func() float64 { return -1 }}
	}
	pool := objectpool.New(objectpool.Config[Buffer]{New: fresh, Clear: func(b *Buffer) { b.fill(0) }})
	return &Memory{take: pool.Get, Give: pool.Put, ReuseRate: func() float64 { return pool.Stats().ReuseRate() }}
}

// Take returns a touched buffer. It is the part of the work that uses the processor.
func (m *Memory) Take() *Buffer {
	b := m.take()
	b.fill(1)
	return b
}
