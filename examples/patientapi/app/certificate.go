package app

import (
	"crypto/tls"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// lookPause is the least time between two looks at the files of a certificate.
const lookPause = time.Second

// certificate is that of two files. It is read again when they have changed, as those of
// a Kubernetes secret do.
type certificate struct {
	files  TLSFlags
	logger *slog.Logger
	now    atomic.Pointer[tls.Certificate]

	mu     sync.Mutex
	looked time.Time
	pair   pair   // of the last look that found a certificate
	failed string // why the last look found none
}

// pair is the text of both files.
type pair struct{ cert, key string }

// readCertificate reads both files. Nothing is started: handshakes look for changes.
func readCertificate(files TLSFlags, logger *slog.Logger) (*certificate, error) {
	c := &certificate{files: files, logger: logger, looked: time.Now()}
	_, err := c.load()
	return c, err
}

// get is for tls.Config. Of several handshakes at one time one looks, and none waits.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c.mu.TryLock() {
		defer c.mu.Unlock()
		if now := time.Now(); now.Sub(c.looked) >= lookPause {
			c.looked = now
			c.look()
		}
	}
	return c.now.Load(), nil
}

// look takes a new certificate. One that is broken, or of which one file is there and the
// other not yet, changes nothing and is logged once.
func (c *certificate) look() {
	switch changed, err := c.load(); {
	case err != nil && err.Error() != c.failed:
		c.failed = err.Error()
		c.logger.Error("the TLS certificate cannot be read again; the one known so far stays", "error", err)
	case err == nil:
		c.failed = ""
		if changed {
			c.logger.Info("the TLS certificate was read again")
		}
	}
}

func (c *certificate) load() (changed bool, err error) {
	cert, err := os.ReadFile(c.files.Cert)
	if err != nil {
		return false, err
	}
	key, err := os.ReadFile(c.files.Key)
	if err != nil {
		return false, err
	}
	read := pair{string(cert), string(key)}
	if read == c.pair {
		return false, nil
	}
	made, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return false, err
	}
	c.pair = read
	c.now.Store(&made)
	return true, nil
}
