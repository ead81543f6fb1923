package pipeline

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/linkforge/bulk/codegen"
)

// SecretVariable is the variable that has the secret of a scheme, for programs that read one.
const SecretVariable = "BULK_SCHEME_KEY"

// ReadSecret returns the secret of a scheme: that in a file, or, without a file, the value of
// SecretVariable. It is none if the scheme takes none.
func ReadSecret(scheme, file string) (codegen.Secret, error) {
	spec, err := codegen.SpecOf(scheme)
	variable := os.Getenv(SecretVariable)
	switch {
	case err != nil: // the configuration has it
	case file != "" && variable != "":
		return codegen.Secret{}, fmt.Errorf("there is a secret in the variable %s, too: which of them is it?", SecretVariable)
	case file != "":
		text, err := os.ReadFile(file)
		if err == nil && len(text) == 0 {
			err = fmt.Errorf("%s is empty", file)
		}
		return codegen.NewSecret(bytes.TrimSuffix(text, []byte("\n"))), err
	case spec.Secret:
		return codegen.NewSecret([]byte(variable)), nil
	}
	return codegen.Secret{}, nil
}

// Version returns the version of a program: the one given to the linker, otherwise that of its module,
// which go install and go build take from a tag or a commit.
func Version(linked string) string {
	if linked != "" {
		return linked
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "(devel)" {
		return cmp.Or(info.Main.Version, "dev")
	}
	return "dev"
}
