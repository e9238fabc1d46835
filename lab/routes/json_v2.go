//go:build goexperiment.jsonv2

package routes

import (
	"encoding/json/v2"
	"io"
	"net/http"
)

// thisBuild is the JSON that those use who write it by hand. The frameworks go
// on using encoding/json, which this build makes of version 2.
const thisBuild = JSONv2

// decodeByHand reads one document without unknown members and nothing after it.
func decodeByHand(r io.Reader, v any) error {
	return json.UnmarshalRead(r, v, json.RejectUnknownMembers(true))
}

func answerByHand(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(status)
	_ = json.MarshalWrite(w, v) // the client has gone
}
