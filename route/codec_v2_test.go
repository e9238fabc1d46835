//go:build goexperiment.jsonv2

package route

import (
	"encoding/json/v2"
	"net/http"
)

// decodeByHand decodes as a careful author would.
func decodeByHand(w http.ResponseWriter, r *http.Request, v any) error {
	return json.UnmarshalRead(http.MaxBytesReader(w, r.Body, 1<<20), v, json.RejectUnknownMembers(true))
}

func answerByHand(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.MarshalWrite(w, v); err != nil {
		http.Error(w, "internal", http.StatusInternalServerError)
	}
}
