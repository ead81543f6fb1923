package codegen

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
)

// MinSecret is the least number of bytes of a secret, but for counter-base62.
const MinSecret = 16

// A Secret is the key of a scheme, or the salt of counter-base62. The
// zero value is no secret. However it is printed, logged or encoded, also as part of another
// value, only its fingerprint is shown.
type Secret struct {
	p *string // a pointer, because fmt would print the bytes of a Secret in an unexported field
}

// NewSecret returns the secret of these bytes, which is none if there are no bytes.
func NewSecret(b []byte) Secret {
	if len(b) == 0 {
		return Secret{}
	}
	s := string(b)
	return Secret{&s}
}

// bytes returns a copy of the bytes.
func (s Secret) bytes() []byte {
	if s.p == nil {
		return nil
	}
	return []byte(*s.p)
}

// Fingerprint returns what may be stored and shown of a secret: 16 hexadecimal digits, or ""
// if there is none.
func (s Secret) Fingerprint() string {
	if s.p == nil {
		return ""
	}
	return hex.EncodeToString(s.derive("bulk:fingerprint")[:8])
}

// derive returns the HMAC-SHA-256 of a label with the secret. No label begins as a hash input
// does.
func (s Secret) derive(label string) []byte {
	mac := hmac.New(sha256.New, s.bytes())
	io.WriteString(mac, label)
	return mac.Sum(nil)
}

// check returns an error if the secret is too short for the scheme.
func (s Secret) check(scheme string) error {
	if n := len(s.bytes()); n < MinSecret {
		return fmt.Errorf("%s needs a secret of at least %d bytes, not %d; to make one: openssl rand -base64 32", scheme, MinSecret, n)
	}
	return nil
}

// String returns the fingerprint, or "none".
func (s Secret) String() string {
	if f := s.Fingerprint(); f != "" {
		return f
	}
	return "none"
}

// Format writes what String returns, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { io.WriteString(f, s.String()) }

// MarshalText returns what String returns, so that this stands in JSON, YAML and logs.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
