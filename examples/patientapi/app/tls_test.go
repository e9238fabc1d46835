package app

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
)

// identity is a certificate for 127.0.0.1 and its key, as text.
type identity struct{ cert, key []byte }

func newIdentity(t *testing.T, serial int64) identity {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	// As seen from any clock: that of synctest is in the year 2000.
	template := x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().AddDate(100, 0, 0), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &private.PublicKey, private)
	require.NoError(t, err)
	key, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	return identity{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})}
}

// put writes both files, and returns a pool that trusts them.
func (i identity) put(t *testing.T, files TLSFlags) *x509.CertPool {
	t.Helper()
	replace(t, files.Cert, i.cert)
	replace(t, files.Key, i.key)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(i.cert)
	return pool
}

// replace replaces a file at once.
func replace(t *testing.T, file string, text []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(file+".new", text, 0o600))
	require.NoError(t, os.Rename(file+".new", file))
}

func tlsFiles(t *testing.T) TLSFlags {
	dir := t.TempDir()
	return TLSFlags{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
}

func TestTLS(t *testing.T) {
	c := quick()
	files := tlsFiles(t)
	pool := newIdentity(t, 1).put(t, files)
	c.TLS = files
	r := start(t, c)
	for _, config := range []*tls.Config{{RootCAs: pool}, {RootCAs: pool, MaxVersion: tls.VersionTLS12}, {RootCAs: pool, MaxVersion: tls.VersionTLS11}} {
		transport := &http.Transport{TLSClientConfig: config}
		resp, err := (&http.Client{Transport: transport}).Do(asked(t.Context(), "https://"+r.addr+"/api/v1/patients/P000001"))
		if config.MaxVersion == tls.VersionTLS11 {
			if err == nil {
				t.Error("TLS 1.1 is accepted")
			}
			continue
		}
		require.NoError(t, err)
		resp.Body.Close()
		transport.CloseIdleConnections()
		if resp.StatusCode != 200 {
			t.Error(resp.Status)
		}
	}
	if status := statusOf(t, r.addr, "/livez", ""); status != 400 {
		t.Errorf("without TLS: %d", status)
	}
}

func TestABrokenCertificateReplacesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files, log := tlsFiles(t), new(bytes.Buffer)
		first, second := newIdentity(t, 1), newIdentity(t, 2)
		first.put(t, files)
		c, err := readCertificate(files, slog.New(slog.NewTextHandler(log, nil)))
		require.NoError(t, err)
		serves := func(want int64, lines int, when string) {
			t.Helper()
			for range 3 { // handshakes
				if got, err := c.get(nil); err != nil || got.Leaf.SerialNumber.Int64() != want {
					t.Errorf("%s: certificate %v, %v; want %d", when, got.Leaf.SerialNumber, err, want)
				}
			}
			if n := strings.Count(log.String(), "\n"); n != lines {
				t.Errorf("%s: %d lines are logged, want %d:\n%s", when, n, lines, log)
			}
		}
		replace(t, files.Cert, second.cert)
		serves(1, 0, "within a second")
		time.Sleep(lookPause)
		serves(1, 1, "with the key of another")
		time.Sleep(lookPause)
		serves(1, 1, "and again")
		replace(t, files.Key, second.key)
		serves(1, 1, "within a second of that")
		time.Sleep(lookPause)
		serves(2, 2, "once both are there")
		require.NoError(t, os.Remove(files.Key))
		time.Sleep(lookPause)
		serves(2, 3, "without its key")
		replace(t, files.Key, []byte("nonsense"))
		time.Sleep(lookPause)
		serves(2, 4, "with nonsense")
		replace(t, files.Key, second.key)
		time.Sleep(lookPause)
		serves(2, 4, "as it was")
		if strings.Contains(log.String(), "PRIVATE") {
			t.Errorf("the key is in the log:\n%s", log)
		}
	})
}
