package workerpool

import (
	"math/bits"

	"github.com/spillway-go/spillway/internal/places"
	"github.com/spillway-go/spillway/limit"
)

// classes gives the law a class for each sampled job: one for a priority, or for a kind within a
// priority if the submitters' contexts name one.
type classes struct {
	places places.Table
	held   [limit.Classes]int // running sampled jobs of each class
}

// begin returns the class of a job that starts.
func (c *classes) begin(kind places.Name, lv int) uint8 {
	at := c.places.Find(kind.Key(lv, 0), 1)
	c.held[at]++
	return at
}

func (c *classes) end(class uint8) { c.held[class]-- }

// renew passes the classes of kinds that became rare to kinds that became frequent, and makes the
// law forget the rare kinds. The caller holds the lock.
func (c *control) renew() {
	if c.law == nil {
		return
	}
	busy := uint32(0)
	for class, n := range c.classes.held {
		if n > 0 {
			busy |= 1 << class
		}
	}
	for left := c.classes.places.Renew(busy); left != 0 && c.forgets != nil; left &= left - 1 {
		c.forgets.Forget(uint8(bits.TrailingZeros32(left)))
	}
}
