package report

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/chart"
)

// alone is what a page would say of a drawing.
const alone = `.chart { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; } .ground { fill: var(--card); }
`

var viewBox = regexp.MustCompile(`viewBox="[^"]*"`)

// Curve draws goodput against offered load as a picture of its own, for light and dark
// pages, from the first set-up that was loaded with several multiples of its capacity.
func Curve(w io.Writer, res results.Results, runs []results.Run) error {
	s := newSession(ledger.Family{}, res, runs)
	for _, g := range s.Setups {
		if len(g.sweep()) == 0 {
			continue
		}
		lines := s.curve(g, g.multiples(), goodputCurve)
		lines.Width, lines.Height = 640, 360
		const edge = 16
		box := fmt.Sprintf(`viewBox="%v %v %v %v"`, -edge, -edge, lines.Width+2*edge, lines.Height+2*edge)
		svg := viewBox.ReplaceAllString(string(lines.SVG()), box+` xmlns="http://www.w3.org/2000/svg"`)
		ground := fmt.Sprintf(`<rect class="ground" x="%v" y="%v" width="100%%" height="100%%" rx="10"/>`, -edge, -edge)
		_, err := io.WriteString(w, strings.Replace(svg, "</desc>", "</desc><style>"+chart.Style+alone+"</style>"+ground, 1))
		return err
	}
	return errors.New("there is no curve: the runs were not made under several multiples of a capacity; draw the results of spillway lab overload")
}
