package limiter

// gauge is a figure that the user measures.
type gauge struct {
	owned
	name  string
	read  func() float64
	limit float64
}

// Gauge is a signal that presses when read returns limit or more, such as the
// wait for a connection of a database pool in seconds, or the length of a queue.
// Rejections carry the reason Signal and the name. See Signal.Level for when
// read is called; it must not call the limiter.
func Gauge(name string, read func() float64, limit float64) Signal {
	return &gauge{name: name, read: read, limit: limit}
}

// Name returns the gauge's name.
func (g *gauge) Name() string { return g.name }

// Level returns the figure over its limit.
func (g *gauge) Level() float64 { return g.read() / g.limit }
