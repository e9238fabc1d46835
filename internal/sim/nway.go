package sim

type nway struct {
	run    *run
	slots  int
	speed  float64
	newest bool // serve the newest waiting call first
	served int  // number of calls taken from hidden
	busy   int
	hidden line
}

const oldestEvery = 61 // one in oldestEvery calls from hidden is the oldest, the others are the newest

func (b *nway) start(c *call) bool {
	if b.busy < b.slots {
		b.serve(c)
		return false
	}
	c.index = queued
	b.hidden.push(c)
	return true
}

func (b *nway) serve(c *call) {
	b.busy++
	c.index = served
	b.run.events.add(b.run.now+lasting(float64(c.work)/b.speed), finish, c, c.gen)
}

func (b *nway) fill() {
	for b.busy < b.slots {
		next := b.hidden.pop
		if b.served++; b.newest && b.served%oldestEvery != 0 {
			next = b.hidden.popLast
		}
		c := next()
		if c == nil {
			return
		}
		b.serve(c)
	}
}

func (b *nway) leave(c *call) bool { return c.index == queued }

func (b *nway) finish(c *call) {
	b.busy--
	b.fill()
	b.run.ended(c)
}

func (b *nway) change(slots int, speed float64) {
	b.slots, b.speed = slots, speed
	b.fill()
}
