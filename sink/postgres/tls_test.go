package postgres

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/linkforge/bulk/sink"
	"github.com/linkforge/bulk/sink/postgres/pgtest"
)

// An authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T, name string) *authority {
	a := &authority{}
	cert, key := a.issue(t, &x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	a.pem = cert
	block, _ := pem.Decode(cert)
	var err error
	a.cert, err = x509.ParseCertificate(block.Bytes)
	noError(t, err)
	block, _ = pem.Decode(key)
	a.key, err = x509.ParseECPrivateKey(block.Bytes)
	noError(t, err)
	return a
}

// issue signs a certificate, with its own key as long as the authority has none.
func (a *authority) issue(t *testing.T, template *x509.Certificate) (certPEM, keyPEM []byte) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	noError(t, err)
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-24*time.Hour), time.Now().Add(24*time.Hour)
	parent, signer := a.cert, a.key
	if signer == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	noError(t, err)
	keyDER, err := x509.MarshalECPrivateKey(key)
	noError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
}

// What libpq's TLS options promise holds against a server that insists on TLS;
// what does not fit is refused at once, with what to do.
func TestTLS(t *testing.T) {
	ours, other := newAuthority(t, "ours"), newAuthority(t, "other")
	cert, key := ours.issue(t, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	secure := pgtest.New(pgtest.Options{
		TCP:      true,
		Files:    map[string][]byte{"cert": cert, "key": key, "ca": ours.pem},
		Settings: []string{"ssl=on", "ssl_cert_file=cert", "ssl_key_file=key", "ssl_ca_file=ca"},
		HBA:      []string{"hostnossl all all all reject", "hostssl all certified all cert", "hostssl all all all scram-sha-256"},
	})
	secure.Need(t)
	t.Cleanup(func() { secure.Close() })
	secure.Exec(t, "postgres", "CREATE ROLE certified LOGIN; CREATE ROLE locked LOGIN PASSWORD 'hunter2'; GRANT ALL ON SCHEMA public TO certified, locked")

	t.Chdir(t.TempDir()) // whose name may have to be quoted in an address
	file := func(name string, content []byte) string {
		noError(t, os.WriteFile(name, content, 0o600))
		return name
	}
	pair := func(a *authority, name string) string {
		cert, key := a.issue(t, &x509.Certificate{Subject: pkix.Name{CommonName: name}})
		return fmt.Sprintf(" sslcert=%s sslkey=%s", file(a.cert.Subject.CommonName+name+".crt", cert), file(a.cert.Subject.CommonName+name+".key", key))
	}
	const none = " sslcert='' sslkey=''" // nor those of whoever runs the test
	right, wrong := " sslrootcert="+file("ours", ours.pem), " sslrootcert="+file("other", other.pem)
	const unchecked = " sslrootcert=''"
	for _, c := range []struct {
		name, host, user, options string
		want                      string // of the error; "": none
	}{
		{"require", "127.0.0.1", "locked", "sslmode=require" + unchecked + none, ""},
		{"prefer", "127.0.0.1", "locked", "sslmode=prefer" + unchecked + none, ""},
		{"allow", "127.0.0.1", "locked", "sslmode=allow" + unchecked + none, ""},
		{"require_ca", "127.0.0.1", "locked", "sslmode=require" + right + none, ""},
		{"require_wrong_ca", "127.0.0.1", "locked", "sslmode=require" + wrong + none, "sslrootcert"},
		{"verify_ca", "127.0.0.1", "locked", "sslmode=verify-ca" + right + none, ""},
		{"verify_ca_other_host", "0.0.0.0", "locked", "sslmode=verify-ca" + right + none, ""},
		{"verify_ca_wrong_ca", "127.0.0.1", "locked", "sslmode=verify-ca" + wrong + none, "sslrootcert"},
		{"verify_ca_no_ca", "127.0.0.1", "locked", "sslmode=verify-ca" + unchecked + none, "sslrootcert"},
		{"verify_full", "127.0.0.1", "locked", "sslmode=verify-full" + right + none, ""},
		{"verify_full_other_host", "0.0.0.0", "locked", "sslmode=verify-full" + right + none, "sslmode"},
		{"verify_full_wrong_ca", "127.0.0.1", "locked", "sslmode=verify-full" + wrong + none, "sslrootcert"},
		{"missing_ca", "127.0.0.1", "locked", "sslmode=verify-full sslrootcert=missing" + none, "missing: no such file"},
		{"disable", "127.0.0.1", "locked", "sslmode=disable", "sslmode"},
		{"client_certificate", "127.0.0.1", "certified", "sslmode=verify-full" + right + pair(ours, "certified"), ""},
		{"client_certificate_of_another", "127.0.0.1", "certified", "sslmode=verify-full" + right + pair(ours, "somebody"), "sslcert"},
		{"client_certificate_of_another_ca", "127.0.0.1", "certified", "sslmode=verify-full" + right + pair(other, "certified"), "sslcert"},
		{"no_client_certificate", "127.0.0.1", "certified", "sslmode=verify-full" + right + none, "sslcert"},
		{"no_client_key", "127.0.0.1", "certified", "sslmode=verify-full" + right + " sslcert=ours sslkey=''", "sslkey"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dsn := fmt.Sprintf("host=%s port=%d user=%s password=hunter2 dbname=postgres %s", c.host, secure.Port(), c.user, c.options)
			s, err := Open(context.Background(), dsn, Options{RetryFor: -1})
			if err == nil {
				defer s.Close()
				if c.want != "" {
					t.Fatal("the server let us in")
				}
				initialize(t, s)
				return
			}
			if c.want == "" || !strings.Contains(err.Error(), c.want) || errors.Is(err, sink.ErrRetryable) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("error %v, want a fatal one with %q", err, c.want)
			}
		})
	}
}
