package postgres

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// connectTimeout is how long a connection to one host may take if the address has no
// connect_timeout. For the driver that is the same as connect_timeout=0, so no address can
// ask to wait without end.
const connectTimeout = 30 * time.Second

// ErrAddress is in the error of Open for an address that cannot be read.
var ErrAddress = errors.New("database address")

// parse reads an address. Its errors contain no password. The driver's own error may, if the
// address is malformed: parse shows the driver's error for the redacted address instead. It
// does the same if the driver takes a part of the password for something else; see strayed.
func parse(dsn string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(dsn)
	if err == nil && !strayed(dsn) {
		config.DefaultQueryExecMode = pgx.QueryExecModeExec
		params := config.RuntimeParams
		params["application_name"] = cmp.Or(params["application_name"], params["fallback_application_name"])
		params["client_encoding"] = "UTF8"
		for _, key := range clientKeys {
			if params[key] != "require" {
				delete(params, key)
			}
		}
		if config.ConnectTimeout == 0 {
			config.ConnectTimeout = connectTimeout
		}
		config.AfterNetConnect, config.BuildFrontend = widen, buffered
		return config, nil
	}
	safe := Redact(dsn)
	if _, again := pgx.ParseConfig(safe); again != nil {
		return nil, fmt.Errorf("%w: %s", ErrAddress, again)
	}
	return nil, fmt.Errorf("%w %s: the password cannot be read; in a URL, percent-escape all its characters except letters and digits,"+
		" or use a password file, which needs no escapes", ErrAddress, safe)
}

// clientKeys are parameters for libpq itself. The driver would send them to the server, which
// does not know them. They are left out, unless the value is "require".
var clientKeys = []string{"fallback_application_name", "gssencmode", "gsslib", "gssdelegation", "keepalives", "keepalives_idle",
	"keepalives_interval", "keepalives_count", "load_balance_hosts", "sslcompression"}

// atKeys are the parameters whose values may contain an @.
var atKeys = []string{"user", "password", "sslpassword", "host", "dbname", "application_name", "options",
	"service", "servicefile", "passfile", "sslcert", "sslkey", "sslrootcert"}

// strayed reports whether the driver takes a part of a password for something else, and would
// show it. In a URL, the driver ends user and password at the first @, or finds none if a /
// comes before it. An @ after that means that the password is not escaped: the rest of it
// would be shown as the name of a host or database. In a string of pairs, a key with one of
// : @ / is a URL without its scheme, up to a = in the password.
func strayed(dsn string) bool {
	scheme, rest, _ := strings.Cut(dsn, "://")
	if scheme != "postgres" && scheme != "postgresql" {
		key, _, _ := strings.Cut(dsn, "=")
		return strings.ContainsAny(key, ":@/")
	}
	if i := strings.IndexAny(rest, "@/"); i >= 0 && rest[i] == '@' {
		rest = rest[i+1:]
	}
	address, query, _ := strings.Cut(rest, "?")
	for pair := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(pair, "=")
		if strings.Contains(value, "@") && !slices.Contains(atKeys, key) {
			return true
		}
	}
	return strings.Contains(address, "@")
}
