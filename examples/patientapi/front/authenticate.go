package front

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/access"
	"github.com/spillway-go/spillway/route"
)

// Verifier finds out whom a bearer token was made for. It is safe for concurrent use.
type Verifier interface {
	// Verify returns the holder of the token, with a Subject, or why the token is not
	// good. The caller is not told why; the log is, so the error repeats nothing of the
	// token.
	Verify(ctx context.Context, token string) (access.Principal, error)
}

var errUnauthenticated = errors.New("front: there is no good token")

var (
	unauthenticated = route.Is(errUnauthenticated, route.Problem{Status: http.StatusUnauthorized, Type: "unauthenticated", Detail: "a valid bearer token is needed"})
	denied          = route.Is(access.ErrDenied, route.Problem{Status: http.StatusForbidden, Type: "forbidden", Detail: "the token does not allow this"})
)

const challengeHeader = "WWW-Authenticate"

// authenticate gives each request that is not public its Visit. Without a good token
// the Visit has the zero Principal, which may do nothing.
func (a *API) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.public(r) {
			next.ServeHTTP(w, r)
			return
		}
		need := a.needs[r.Pattern]
		visit := &access.Visit{Principal: a.front.holder(r), Resource: need.resource, Action: need.action}
		next.ServeHTTP(w, r.WithContext(access.NewContext(r.Context(), visit)))
	})
}

// public reports whether r needs no token: it is for a public route or page, or for a
// path that has neither.
func (a *API) public(r *http.Request) bool { return r.Pattern == "" || a.needs[r.Pattern].public }

// holder returns whom the token of r was made for; the zero Principal without a good
// token. Tokens in a query or a body are not looked for: they end up in logs.
func (f *Front) holder(r *http.Request) access.Principal {
	header := r.Header["Authorization"]
	if len(header) != 1 || f.verifier == nil {
		return access.Principal{}
	}
	kind, token, _ := strings.Cut(header[0], " ")
	if !strings.EqualFold(kind, scheme) {
		return access.Principal{}
	}
	p, err := f.verifier.Verify(r.Context(), token)
	if err != nil {
		f.unauthenticated.Add(time.Now(), "reason", err.Error())
		return access.Principal{}
	}
	return p
}

// authorise refuses what can be refused without the body, and says nothing about
// whether there is such a patient: no store is asked before it.
func (a *API) authorise(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !a.public(r) {
			if err := a.needs[r.Pattern].permit(access.FromContext(r.Context()), r); err != nil {
				a.Problem(w, r, err)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

func (n need) permit(v *access.Visit, r *http.Request) error {
	if v.Principal.Subject == "" {
		return errUnauthenticated
	}
	id, ok := n.id(r)
	if !ok {
		return v.Begin(id) // no id: it does not go on record
	}
	return v.Touch(id)
}

// id returns what the path of r names the patient by, and whether that is an id.
func (n need) id(r *http.Request) (id string, ok bool) {
	if n.patient == "" {
		return "", false
	}
	id, _, _ = strings.Cut(r.PathValue(n.patient), "-")
	_, err := patientapi.ParseID(id)
	return id, err == nil
}

// exports reports whether r asks for an export, which is a stream: it may take as long as
// the client reads, and is no measure of anything.
func exports(r *http.Request) bool {
	action := access.FromContext(r.Context()).Action
	return action == access.Export || action == access.ExportAll
}
