package chart

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The Web Content Accessibility Guidelines (AA) ask for a contrast of 4.5 for text and of 3
// for drawings.
func TestColoursHaveContrast(t *testing.T) {
	themes := regexp.MustCompile(`(?s):root \{(.*?)\}`).FindAllStringSubmatch(Style, -1)
	if len(themes) != 2 {
		t.Fatalf("%d themes, want a light and a dark one", len(themes))
	}
	for i, theme := range []string{"light", "dark"} {
		colours := map[string]string{}
		for _, m := range regexp.MustCompile(`--([\w-]+): #([0-9a-f]{6});`).FindAllStringSubmatch(themes[i][1], -1) {
			colours[m[1]] = m[2]
		}
		for least, pairs := range map[float64]string{
			4.5: "text/ground text/card soft/ground soft/card link/ground link/card fails/ground fails/card card/fails " +
				"holds/holds-soft fails/fails-soft open/open-soft hardware/hardware-soft text/band text/holds-soft text/open-soft text/fails-soft",
			3: "s0/card s1/card s2/card s3/card s4/card s5/card s6/card s7/card " +
				"holds/band fails/band open/band hardware/card published/band published/card",
		} {
			for pair := range strings.FieldsSeq(pairs) {
				a, b, _ := strings.Cut(pair, "/")
				if got := contrast(t, colours[a], colours[b]); got < least {
					t.Errorf("%s: the contrast of %s on %s is %.2f, want %v", theme, a, b, got, least)
				}
			}
		}
	}
}

func contrast(t *testing.T, a, b string) float64 {
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + .05) / (min(x, y) + .05)
}

// luminance is relative, from 0 to 1.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	n, err := strconv.ParseUint(hex, 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	linear := func(shift int) float64 {
		c := float64(n>>shift&0xff) / 255
		if c <= .03928 {
			return c / 12.92
		}
		return math.Pow((c+.055)/1.055, 2.4)
	}
	return .2126*linear(16) + .7152*linear(8) + .0722*linear(0)
}
