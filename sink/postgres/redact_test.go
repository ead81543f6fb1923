package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestRedact(t *testing.T) {
	for _, c := range []struct{ name, dsn, want string }{
		{"no_secret", "postgres://user@host:5432/db?sslmode=require", "postgres://user@host:5432/db?sslmode=require"},
		{"no_user", "postgres://host:5432/db", "postgres://host:5432/db"},
		{"only_scheme", "postgres://", "postgres://"},
		{"password", "postgres://user:hunter2@host/db", "postgres://user:xxxxx@host/db"},
		{"scheme_long", "postgresql://user:hunter2@h1:1,h2:2/db?a=b", "postgresql://user:xxxxx@h1:1,h2:2/db?a=b"},
		{"empty_user", "postgres://:hunter2@host/db", "postgres://:xxxxx@host/db"},
		{"escaped", "postgres://user:hunter2%40%2F@host/db", "postgres://user:xxxxx@host/db"},
		{"bad_escape", "postgres://user:hunter2%zz@host/db", "postgres://user:xxxxx@host/db"},
		{"at_inside", "postgres://user:p@hunter2@host/db", "postgres://user:xxxxx@host/db"},
		{"slash_inside", "postgres://user:p/hunter2@host/db", "postgres://user:xxxxx@host/db"},
		{"question_inside", "postgres://user:p?hunter2@host/db?sslmode=disable", "postgres://user:xxxxx@host/db?sslmode=disable"},
		{"both_inside", "postgres://user:p@x?hunter2@host/db", "postgres://user:xxxxx"},
		{"hash_colon_inside", "postgres://user:#:hunter2@host/db", "postgres://user:xxxxx@host/db"},
		{"space_inside", "postgres://user:a hunter2@host/db", "postgres://user:xxxxx@host/db"},
		{"query", "postgres://host/db?password=hunter2&sslmode=disable", "postgres://host/db?password=xxxxx&sslmode=disable"},
		{"query_last", "postgres://host/db?sslmode=disable&sslpassword=hunter2", "postgres://host/db?sslmode=disable&sslpassword=xxxxx"},
		{"query_escaped_key", "postgres://host/db?pass%77ord=hunter2", "postgres://host/db?pass%77ord=xxxxx"},
		{"query_bad_key", "postgres://host/db?pass%zz=hunter2", "postgres://host/db?pass%zz=xxxxx"},
		{"query_case", "postgres://host/db?PassWord=hunter2", "postgres://host/db?PassWord=xxxxx"},
		{"query_with_at", "postgres://u:p@host/db?password=hunter2@hunter2", "postgres://u:xxxxx"},
		{"query_semicolon", "postgres:///db?application_name=x;password=hunter2", "postgres:///db?application_name=xxxxx"},
		{"query_escaped_equals", "postgres:///db?password%3Dhunter2&sslmode=disable", "postgres:///db?xxxxx&sslmode=disable"},
		{"query_blank", "postgres:///db?application_name=a password=hunter2", "postgres:///db?application_name=xxxxx"},
		{"query_ampersand", "postgres://me@h/db?password=ab&hunter2", "postgres://me@h/db?password=xxxxx&xxxxx"},
		{"query_no_values", "postgres://h/db?&hunter2&&sslmode=disable&", "postgres://h/db?&xxxxx&&sslmode=disable&"},
		{"host_forgotten", "postgres://user:hunter2/db", "postgres://user:xxxxx"},
		{"at_escaped", "postgres://user:hunter2%40host/db", "postgres://user:xxxxx"},
		{"hosts", "postgres://h1:1,[::1]:2,h3/db?sslmode=disable", "postgres://h1:1,[::1]:2,h3/db?sslmode=disable"},
		{"hosts_second_port", "postgres://h1:1,h2:hunter2,h3/db", "postgres://h1:1,h2:xxxxx"},
		{"passfile", "postgres://host/db?passfile=/home/me/.pgpass", "postgres://host/db?passfile=/home/me/.pgpass"},
		{"other_scheme", "mysql://user:hunter2@host/db", "mysql://user:xxxxx@host/db"},

		{"pairs", "host=h user=u password=hunter2 dbname=d", "host=h user=u password=xxxxx dbname=d"},
		{"pairs_none", "host=/run dbname='my db' ", "host=/run dbname='my db' "},
		{"pairs_quoted", `host=h password='a hunter2\' b' dbname=d`, "host=h password=xxxxx dbname=d"},
		{"pairs_backslash", `password=a\ hunter2 dbname=d`, "password=xxxxx dbname=d"},
		{"pairs_blanks", "password = hunter2 dbname\t=\td", "password=xxxxx dbname\t=\td"},
		{"pairs_newline", "host=h\npassword=hunter2\ndbname=d", "host=h\npassword=xxxxx\ndbname=d"},
		{"pairs_empty", "password='' dbname=d", "password=xxxxx dbname=d"},
		{"pairs_unterminated", "host=h password='hunter2 dbname=d", "host=h password=xxxxx"},
		{"pairs_unterminated_before", "dbname='d password=hunter2", "dbname=xxxxx"},
		{"pairs_unquoted_blank", "password=a hunter2 dbname=d", "password=xxxxx xxxxx"},
		{"pairs_after_quote", "password='a'hunter2 dbname=d", "password=xxxxxxxxxx"},
		{"pairs_sslpassword", "sslpassword=hunter2 sslmode=require", "sslpassword=xxxxx sslmode=require"},
		{"pairs_equals", "password=hunter2=hunter2 dbname=d", "password=xxxxx dbname=d"},
		{"neither", "hunter2", "xxxxx"},
		{"neither_url", "user:hunter2@host/db", "xxxxx"},
		{"neither_equals", "user:hunter2=@host/db", "xxxxx"},
		{"one_slash", "postgres:/user:pw=hunter2@host/db", "xxxxx"},
		{"empty", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Redact(c.dsn); got != c.want {
				t.Errorf("Redact(%q)\n got %q\nwant %q", c.dsn, got, c.want)
			}
		})
	}
}

// No error about an address has the password, whatever is wrong with it.
func TestErrorsKeepSecrets(t *testing.T) {
	t.Setenv("PGPASSWORD", "hunter2")
	for _, dsn := range []string{
		"postgres://user:hunter2@host:notaport/db",
		"postgres://user:hunter2%zz@host/db",
		"postgres://user:p/hunter2@host/db",
		"postgres://user:p?hunter2@host:1/db",
		"postgres://user:p@hunter2@127.0.0.1:1/db?sslmode=disable",
		"postgres://user:/hunter2@host/db",
		"postgres://user:12/hunter2@host/db",
		"postgres://user:p@hunter2?a=b@host/db",
		"postgres://user:/hunter2?a=b&c=d@host/db",
		"postgres://user:hunter2@[::1/db",
		"postgres://user:hunter2@127.0.0.1:1/db?sslmode=nonsense",
		"postgres://user:hunter2@127.0.0.1:1/db?sslmode=disable&connect_timeout=2",
		"postgres://user@127.0.0.1:1/db?sslmode=disable",
		"postgres://127.0.0.1:1/db?password=hunter2&sslmode=disable",
		"postgres://user@127.0.0.1:1/db?sslmode=disable&password=ab&hunter2",
		"postgres://user:hunter2/db",
		"postgres://user:hunter2%40127.0.0.1/db",
		"postgres://127.0.0.1:1/db?sslmode=disable&application_name=x;password=hunter2",
		"host=127.0.0.1 port=1 password='hunter2",
		"host=127.0.0.1 port=1 password=a hunter2 sslmode=disable",
		"host=127.0.0.1 port=x password=hunter2",
		"host=127.0.0.1 port=1 user=u password=hunter2 sslmode=disable",
		"host=127.0.0.1 port=1 password=hunter2 service=missing",
		"host=/nowhere/at/all password=hunter2",
		"hunter2",
		"user:hunter2@host/db",
		"user:hunter2=@host/db",
		"postgres:/user:pw=hunter2@host/db",
		"postgres://user:hunter2\x00@host/db",
	} {
		_, err := Open(context.Background(), dsn, Options{RetryFor: -1})
		if err == nil {
			t.Errorf("%q was opened", dsn)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: the error tells: %v", dsn, err)
		}
	}
}

// A URL without its scheme is no list of keywords, be there a = in its password: the
// server would tell of the keyword.
func TestAddressWithoutAScheme(t *testing.T) {
	for _, dsn := range []string{"user:hunter2=@host/db", "postgres:/user:pw=hunter2@host/db"} {
		if _, err := Open(t.Context(), dsn, Options{RetryFor: -1}); !errors.Is(err, ErrAddress) {
			t.Errorf("%s was read: %v", dsn, err)
		}
	}
}

// What may have an @ of its own is not taken for a password that strays.
func TestAddressesWithAnAt(t *testing.T) {
	for _, dsn := range []string{
		"postgres://me:p%40ss@h/links",
		"postgres://h:5432/links?user=me@server&application_name=nightly@etl",
		"postgres://me:p@h/links?passfile=/home/me@corp/.pgpass",
		"postgres://me:p@h/links?search_path=a%40b",
		"host=h user=me@server password='a@://b@c'",
	} {
		if config, err := parse(dsn); err != nil || config.Host != "h" {
			t.Errorf("%s: %v", dsn, err)
		}
	}
}

func FuzzRedact(f *testing.F) {
	f.Add("a", "b c")
	f.Add("p@x/y?z", "'\\")
	f.Add("p@", "")
	f.Add("12/", "?a=b")
	f.Fuzz(func(t *testing.T, before, after string) {
		const secret = "hunter2"
		if strings.Contains(before+"|"+after, secret) {
			t.Skip()
		}
		for _, dsn := range []string{
			"postgres://user:" + before + secret + after + "@host/db",
			"host=h password='" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(before+secret+after) + "' dbname=d",
		} {
			if got := Redact(dsn); strings.Contains(got, secret) {
				t.Errorf("Redact(%q) = %q", dsn, got)
			}
			if config, err := parse(dsn); err != nil {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("parse(%q): %v", dsn, err)
				}
			} else if shown := fmt.Sprint(config.Host, config.Port, config.Database, config.User); strings.Contains(shown, secret) {
				t.Errorf("parse(%q) takes the password for %s", dsn, shown)
			}
		}
	})
}
