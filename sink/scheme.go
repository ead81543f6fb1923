package sink

import (
	"context"
	"errors"
	"fmt"
)

// A Scheme says how the codes of a workspace are made.
type Scheme struct {
	Name        string // such as "keyed-base62"
	CodeLength  int    // of keyed and counter schemes; 0: not stored
	Multiplier  int64  // of counter-base62; 0: not stored
	Fingerprint string // of the secret; "": none
	Fold        bool   // the workspace folds case: all its codes are in ASCII lower case
}

// CheckSecret returns an error that wraps ErrSecretInUse if the secret of the scheme belongs to
// another scheme. The argument is what Fingerprints returns.
func (s Scheme) CheckSecret(used map[string]string) error {
	if owner, ok := used[s.Fingerprint]; ok && owner != s.Name {
		return fmt.Errorf("%w: %s (fingerprint %s); choose another secret for %s", ErrSecretInUse, owner, s.Fingerprint, s.Name)
	}
	return nil
}

// ErrSecretInUse is the class of the error of a scheme whose secret belongs to another scheme in
// the store.
var ErrSecretInUse = errors.New("another scheme has this secret")

// A SchemeSession is what a Session does for the schemes of workspaces.
type SchemeSession interface {
	// Schemes returns the schemes that were set, by workspace: of these workspaces, or of all if
	// the list is nil. Links of any other workspace have the scheme sha256-base58.
	Schemes(ctx context.Context, workspaces []string) (map[string]Scheme, error)
	// Fingerprints returns the fingerprints of the secrets of all workspaces, with the name of
	// the scheme that each belongs to.
	Fingerprints(ctx context.Context) (map[string]string, error)
	// SetScheme commits the scheme of workspaces that the session has locked and that have no
	// links. It fails as CheckSecret does, also if two sessions set schemes at the same time.
	SetScheme(ctx context.Context, workspaces []string, scheme Scheme) error
}
