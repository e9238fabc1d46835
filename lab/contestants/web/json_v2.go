//go:build goexperiment.jsonv2

package main

import (
	"encoding/json/v2"
	"io"

	"github.com/spillway-go/spillway/lab/routes"
)

// thisBuild is the JSON package of the hand-written contestants. The frameworks still
// use encoding/json, which this build implements with version 2.
const thisBuild = routes.JSONv2

// decodeByHand reads one document without unknown members and nothing after it.
func decodeByHand(r io.Reader, v any) error {
	return json.UnmarshalRead(r, v, json.RejectUnknownMembers(true))
}

func encodeByHand(w io.Writer, v any) error { return json.MarshalWrite(w, v) }
