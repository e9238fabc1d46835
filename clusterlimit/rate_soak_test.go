//go:build soak

package clusterlimit

import (
	"testing"

	"github.com/spillway-go/spillway/internal/soak"
)

// Two members that share a rate together admit no more than the rate permits.
func TestSoakMembersAdmitTheirRateTogether(t *testing.T) {
	_, admitted, took, _ := usedUp(t)
	soak.AtMost(t, "admitted", float64(admitted), 1000*took.Seconds()+2+100, "", "the rate in the time it took, a tenth of a second of it saved up, and one for each member")
}
