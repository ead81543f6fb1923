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

// connectTimeout is how long a connection to one host may take if the address does not
// say. The driver does not tell that from connect_timeout=0, so nobody waits for ever:
// who wants to wait for longer names a longer time.
const connectTimeout = 30 * time.Second

// ErrAddress is in the error of Open for an address that it cannot read.
var ErrAddress = errors.New("database address")

// parse reads an address. Its errors do not contain a password: the driver's own may,
// where the address is malformed, so it is asked again about the redacted address,
// and what it says about that is shown. The same goes for an address that it reads
// with a part of the password taken for something else, see strayed.
func parse(dsn string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(dsn)
	if err == nil && !strayed(dsn) {
		config.DefaultQueryExecMode = pgx.QueryExecModeExec
		params := config.RuntimeParams
		params["application_name"] = cmp.Or(params["application_name"], params["fallback_application_name"], appName)
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
	return nil, fmt.Errorf("%w %s: the password cannot be read: in a URL, characters other than letters and digits"+
		" must be percent-escaped; a password file needs no escapes", ErrAddress, safe)
}

// clientKeys are parameters of libpq's own that the driver would send to the server, which
// does not know them. Without them, connections are made as well, unless one is required.
var clientKeys = []string{"fallback_application_name", "gssencmode", "gsslib", "gssdelegation", "keepalives", "keepalives_idle",
	"keepalives_interval", "keepalives_count", "load_balance_hosts", "sslcompression"}

// atKeys are the parameters whose values may well have an @.
var atKeys = []string{"user", "password", "sslpassword", "host", "dbname", "application_name", "options",
	"service", "servicefile", "passfile", "sslcert", "sslkey", "sslrootcert"}

// strayed tells whether a URL has an @ behind what the driver takes for user and
// password, which end at the first @, or are not there if a / comes before it. Then
// they are not escaped, and it would show the rest as the name of a host or database.
// Or it would show a keyword, which is a URL without its scheme up to a = in the password.
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
