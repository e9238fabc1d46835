package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/spillway-go/spillway/examples/patientapi/access"
	"github.com/spillway-go/spillway/examples/patientapi/token"
)

// AuthFlags say which callers are believed.
type AuthFlags struct {
	JWKS     string `name:"jwks" help:"JSON Web Key Set that tokens are verified with: a file, or an https URL. Without it there are development keys, which are not for real patients." env:"SPILLWAY_JWKS" placeholder:"FILE|URL"`
	Issuer   string `help:"Who makes tokens, their iss; with --jwks." env:"SPILLWAY_ISSUER"`
	Audience string `help:"For whom tokens are made, their aud; with --jwks." env:"SPILLWAY_AUDIENCE"`

	KeyFolder `embed:""`
}

// KeyFolder says where development keys are.
type KeyFolder struct {
	DevelopmentKeys string `help:"Folder of the development keys, which are made on first use; in the user's configuration folder unless given." env:"SPILLWAY_DEVELOPMENT_KEYS" placeholder:"FOLDER"`
}

// check finds what can be found wrong before anything is touched.
func (f AuthFlags) check() error {
	switch {
	case f.JWKS == "" && f.Issuer+f.Audience != "":
		return usagef("issuer and audience are for keys of an issuer: give --jwks as well")
	case f.JWKS != "" && (f.Issuer == "" || f.Audience == ""):
		return usagef("jwks without issuer and audience: any token of that issuer, for any service, would be good here; give --issuer and --audience")
	case f.JWKS != "" && f.DevelopmentKeys != "":
		return usagef("development-keys and jwks: give one of them")
	}
	return nil
}

// signer returns the one of the development keys.
func (f KeyFolder) signer() (*token.Signer, error) {
	dir := f.DevelopmentKeys
	if dir == "" {
		var err error
		if dir, err = token.DevelopmentDir(); err != nil {
			return nil, usage(err)
		}
	}
	s, err := token.Development(dir)
	return s, usage(err)
}

// callers are those whose tokens are good.
type callers struct {
	verifier    *token.Verifier
	development *token.Signer // nil with keys of an issuer
	keys        *token.Keys   // of an issuer, or nil
	stop        context.CancelFunc
	watching    sync.WaitGroup
}

// openCallers reads the keys, and watches those of an issuer until Close.
func (c *Command) openCallers(ctx context.Context, logger *slog.Logger, stderr io.Writer) (*callers, error) {
	made := &callers{stop: func() {}}
	var err error
	if c.Auth.JWKS == "" {
		if made.development, err = c.Auth.signer(); err != nil {
			return nil, err
		}
		fmt.Fprintln(stderr, "development keys: do not use with real patients; --jwks takes those of an issuer")
		made.verifier, err = made.development.Verifier()
		return made, err
	}
	keys, err := token.Open(ctx, c.Auth.JWKS, logger)
	if err != nil {
		return nil, usagef("jwks: %w", err)
	}
	if made.verifier, err = token.NewVerifier(token.Config{Keys: keys, Issuer: c.Auth.Issuer, Audience: c.Auth.Audience}); err != nil {
		return nil, err
	}
	made.keys = keys
	watch, stop := context.WithCancel(context.WithoutCancel(ctx)) // requests are answered after ctx has ended
	made.stop = stop
	made.watching.Go(func() { keys.Watch(watch) })
	return made, nil
}

// metrics are those of the keys of an issuer.
func (c *callers) metrics() []prometheus.Collector {
	if c.keys == nil {
		return nil
	}
	return []prometheus.Collector{prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "patientapi_keys_stale", Help: "1 while the keys of --jwks cannot be read again, and the last that could stay.",
	}, func() float64 {
		if c.keys.Stale() {
			return 1
		}
		return 0
	})}
}

// Close implements io.Closer.
func (c *callers) Close() error {
	c.stop()
	c.watching.Wait()
	return nil
}

const workday = 8 * time.Hour

// example returns a command line that reads a patient, again if the store far away has
// failed; empty where another one makes the tokens.
func (c *callers) example(tls TLSFlags, addr string) string {
	if c.development == nil {
		return ""
	}
	text, err := c.development.Mint(token.Grant{Role: access.Clinician, Lifetime: workday})
	if err != nil {
		return ""
	}
	return fmt.Sprintf("curl --retry 3 %s-H 'Authorization: Bearer %s' %s://%s/api/v1/patients/P000001", tls.curl(), text, tls.scheme(), addr)
}
