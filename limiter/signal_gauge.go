package limiter

// gauge is a figure that the user measures.
type gauge struct {
	owned
	name  string
	read  func() float64
	limit float64
}

// Gauge returns a signal that presses when read returns limit or more. Examples are
// the wait for a connection of a database pool in seconds, and the length of a queue.
// Rejections carry the reason Signal and the name. See Signal.Level for when read is
// called; read must not call the limiter.
func Gauge(name string, read func() float64, limit float64) Signal {
	return &gauge{name: name, read: read, limit: limit}
}

// Name returns the gauge's name.
func (g *gauge) Name() string { return g.name }

// Level returns the figure divided by its limit.
func (g *gauge) Level() float64 { return g.read() / g.limit }
