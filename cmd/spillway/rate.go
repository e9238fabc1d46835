package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// rate is a number of requests a second. It is written so, or with another time: 20, 20/s, 1200/m,
// 50/1s.
type rate float64

// Decode reads the text of a flag, or the number in a configuration file.
func (r *rate) Decode(ctx *kong.DecodeContext) error {
	token, err := ctx.Scan.PopValue("rate")
	if err != nil {
		return err
	}
	n, err := parseRate(token.String())
	*r = rate(n)
	return err
}

func parseRate(text string) (float64, error) {
	number, unit, divided := strings.Cut(text, "/")
	n, err := strconv.ParseFloat(number, 64)
	span := time.Second
	if err == nil && divided {
		if strings.Trim(unit, "hmsuµn") == "" {
			unit = "1" + unit
		}
		span, err = time.ParseDuration(unit)
	}
	if err != nil || span <= 0 {
		return 0, fmt.Errorf("%.60q is no rate: want a number a second such as 20, or 20/s or 1200/m", text)
	}
	return n / span.Seconds(), nil
}
