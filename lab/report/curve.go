package report

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

// alone is what a page would say of a drawing.
const alone = `.chart { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; } .ground { fill: var(--card); }
`

// Curve draws goodput against offered load as a picture of its own, for light and dark
// pages, from the first set-up that was loaded with several multiples of its capacity.
func Curve(w io.Writer, res results.Results, runs []results.Run) error {
	s := newSession(ledger.Family{}, res, runs)
	for _, g := range s.Setups {
		if len(g.sweep()) == 0 {
			continue
		}
		lines := s.curve(g, goodputCurve)
		lines.Width, lines.Height = 640, 380
		style, err := files.ReadFile("page/chart.css")
		if err != nil {
			return err
		}
		size := fmt.Sprintf(`width="%v" height="%v" xmlns="http://www.w3.org/2000/svg" `, lines.Width, lines.Height)
		svg := strings.Replace(string(lines.SVG()), "<svg ", "<svg "+size, 1)
		_, err = io.WriteString(w, strings.Replace(svg, "</desc>", "</desc><style>"+string(style)+alone+`</style><rect class="ground" width="100%" height="100%" rx="10"/>`, 1))
		return err
	}
	return errors.New("there is no curve: the runs were not made under several multiples of a capacity; draw the results of spillway lab overload")
}
