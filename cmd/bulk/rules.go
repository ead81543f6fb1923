package main

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"time"

	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// rulesText has the flags of link rules as they were given.
type rulesText struct {
	on                                 bool
	identity, onDrift, revive          string
	expiresAt, expiresIn, temporaryTTL string
	maxUses, linkType, owner           string
}

// flags defines the flags of link rules.
func (t *rulesText) flags(cmd *cobra.Command, f *pflag.FlagSet) {
	f.BoolVar(&t.on, "rules", false, "read expiry, use limit, type and owner of links")
	t.rowFlags(cmd, f)
}

// rowFlags defines those that a single URL can have, too.
func (t *rulesText) rowFlags(cmd *cobra.Command, f *pflag.FlagSet) {
	f.StringVar(&t.identity, "identity", "", "what a link is found by, `PARTS`: url, params or row")
	f.StringVar(&t.onDrift, "on-drift", "", "link and row differ: `MODE` keep, update, reject")
	f.StringVar(&t.revive, "revive", "", "dead links come back: `MODE` ended, all, none")
	f.StringVar(&t.expiresAt, "expires-at", "", "`TIME` at which links without an expiry expire")
	f.StringVar(&t.expiresIn, "expires-in", "", "`TIME` that they live, as 2w or 90d, from --as-of")
	f.StringVar(&t.temporaryTTL, "temporary-ttl", "", "`TIME` that TEMPORARY ones live (default: 8h)")
	f.StringVar(&t.maxUses, "max-uses", "", "use limit of rows without one: `N` uses")
	f.StringVar(&t.linkType, "link-type", "", "`TYPE` of rows without one: permanent or temporary")
	f.StringVar(&t.owner, "owner", "", "owner of rows without one: an `ID`")
	offer(cmd, "identity", "url", "params", "row")
	offer(cmd, "on-drift", "keep", "update", "reject")
	offer(cmd, "revive", "ended", "all", "none")
	offer(cmd, "link-type", "permanent", "temporary")
}

// parse reads them into a configuration.
func (t *rulesText) parse(c *pipeline.Config) error {
	var problems flagErrors
	check := func(flag, value string, read func() error) {
		if value == "" {
			return
		}
		t.on = true
		problems.check(flag, read())
	}
	f := &rules.Flags{Owner: []byte(t.owner)}
	check("owner", t.owner, func() error { return nil })
	check("identity", t.identity, func() (err error) { f.Identity, err = rules.ParseIdentity(t.identity); return err })
	check("on-drift", t.onDrift, func() (err error) { c.OnDrift, err = rules.ParseOnDrift(t.onDrift); return err })
	check("revive", t.revive, func() (err error) { c.Revive, err = rules.ParseRevivals(t.revive); return err })
	check("expires-at", t.expiresAt, func() error {
		e, ok := rules.ParseExpiry([]byte(t.expiresAt))
		f.Expiry = e
		return wants(ok, t.expiresAt, "a time such as 2026-01-31T18:00:00Z, 2026-01-31 or 1769882400")
	})
	check("expires-in", t.expiresIn, func() (err error) { f.ExpiresIn, err = parseLife(t.expiresIn); return err })
	check("temporary-ttl", t.temporaryTTL, func() (err error) { f.TemporaryTTL, err = parseLife(t.temporaryTTL); return err })
	check("max-uses", t.maxUses, func() error {
		n, ok := rules.ParseLimit([]byte(t.maxUses))
		f.Limit = n
		return wants(ok, t.maxUses, "a whole number of 1 or more")
	})
	check("link-type", t.linkType, func() error {
		kind, ok := rules.ParseType([]byte(t.linkType))
		f.Type = kind
		return wants(ok, t.linkType, "permanent or temporary")
	})
	if t.expiresAt != "" && t.expiresIn != "" {
		problems = append(problems, errors.New("--expires-at and --expires-in exclude each other"))
	}
	if t.on {
		c.Rules = f
	}
	return errors.Join(problems...)
}

func wants(ok bool, text, want string) error {
	if ok {
		return nil
	}
	return fmt.Errorf("%q is not %s", text, want)
}

// lifeUnits are the units of how long a link lives.
var lifeUnits = map[string]time.Duration{"w": 7 * 24 * time.Hour, "d": 24 * time.Hour, "h": time.Hour, "min": time.Minute, "s": time.Second}

var lifePart = regexp.MustCompile(`^([0-9]+)([a-z]+)`)

// parseLife reads how long a link lives: whole numbers with w, d, h, min or s, the longer units
// first, such as 90d or 1h30min; in all a second or more.
func parseLife(text string) (d time.Duration, err error) {
	wrong := fmt.Errorf("%q is not a time such as 2w, 90d, 12h, 1h30min or 45s", text)
	last := time.Duration(math.MaxInt64)
	for rest := text; rest != ""; {
		part := lifePart.FindStringSubmatch(rest)
		if part == nil {
			return 0, wrong
		}
		if part[2] == "m" {
			return 0, fmt.Errorf("%s: minutes are min, months are not counted: 90d", text)
		}
		n, err := strconv.ParseInt(part[1], 10, 64)
		unit := lifeUnits[part[2]]
		if err != nil || unit == 0 || unit >= last || n > int64((math.MaxInt64-d)/unit) {
			return 0, wrong
		}
		d, last, rest = d+time.Duration(n)*unit, unit, rest[len(part[0]):]
	}
	if d == 0 {
		return 0, wrong
	}
	return d, nil
}
