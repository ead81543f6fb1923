package main

import "github.com/spf13/cobra"

// topics returns the help topics, which are no commands.
func topics() (list []*cobra.Command) {
	for _, t := range []struct{ name, short, text string }{
		{"legacy", "Old codes: what becomes of them, and their flags", legacyTopic},
		{"migration", "What a link was beyond its code: titles, domains, passwords", migrationTopic},
		{"rules", "Links that end: expiry, use limit, type and owner", rulesTopic},
		{"campaigns", "Several links from one row", campaignTopic},
		{"schemes", "How codes are made: from the URL, a secret or a counter", schemesTopic},
		{"exit-codes", "What each exit code means", exitCodes},
	} {
		list = append(list, &cobra.Command{Use: t.name, Short: t.short, Long: t.text})
	}
	return list
}

const legacyTopic = `The rows of another shortener have codes already. --legacy says what becomes of
them:
  keep  The old codes stay, byte for byte. If a URL has several, the smallest is
        the code of its link, and the others are aliases of it. A URL without an
        old code gets a generated one.
  both  Each link gets a generated code. All old codes are aliases of it.
  map   Links get generated codes only. The mapping shows old and new codes.

If two URLs claim one old code, it goes to the one that has it in the store, or
else to the one that sorts first. --on-conflict says what becomes of the other
rows:
  reject    They are rejected (code_taken). This is the default.
  fail      The run fails, and stores nothing.
  generate  They count as rows without an old code.
With --identity params a URL here is one with its expiry and use limit, with row
one with its ref.

Which columns count:
  --profile      The program that wrote the files: bulk profiles lists them. The
                 default is auto with --legacy: a file is recognised by its
                 columns.
  --code-column  The column of the old code, by name or number. path(COLUMN)
                 takes the path of a URL. By default it is found by its usual
                 names.
  --map          Columns by what they hold, such as url=target,code=slug. It
                 wins over the profile. A LIST may have url, code, workspace,
                 kind, domain, title, tags, created_at, clicks, password,
                 archived, enabled, regex, targets, starts_at,
                 redirect_code, expires_at, max_uses, link_type,
                 owner_id and ref. path(COLUMN) takes the path of a URL,
                 trim(COLUMN) takes slashes off both ends, list(COLUMN) takes
                 each element of a JSON list.

Which codes may stay:
  --code-pattern  Rows whose old code is not of this regular expression are
                  rejected (bad_code). The default is [A-Za-z0-9._~-]{1,64}.
  --reserved      Rows whose old code is in this file, a word a line, are
                  rejected (code_reserved).
  --fold-case     For servers that do not tell Menu from menu, with the run
                  that makes the first links of a workspace: all its codes,
                  also those of later runs, are in lower case.

  --partial       A JSON document that says that it is one page of several is
                  refused. This takes it as it is.
  --no-rules      Links end as the file says. This leaves it out: they become
                  eternal, and are counted (ends).

  bulk preview old.csv -w shop --legacy keep
  bulk run old.csv -w shop --legacy keep --map 'code=path(short),url=target'`

const migrationTopic = `A link had a title and a date, perhaps a password. With --legacy, or with one of
these flags, bulk looks at the columns that the profile or --map knows, and at
those whose name says what they are. Links that exist are not changed.
  --domains       Codes belong to a short domain. keep makes a workspace of each
                  domain; --workspace W goes before it (W/bit.ly), and rows
                  without a domain are in W. merge puts all into one workspace,
                  where two URLs with the same code are a conflict.
  --default-domain
                  The domain of rows that have none. It counts for --domains
                  and for {domain} in --base-url.
  --attrs         The title, the tags, the creation time, the clicks and the
                  redirect code (301, 302, 307 or 308) are stored with new
                  links, if the profile or --map knows their columns. bulk
                  export writes them. List other columns by name; profile in
                  the list stands for these five. none: none of them. Personal
                  data (the column ip of YOURLS) is left out, also of the
                  reports, unless it is listed. The default is profile with
                  --legacy, and if --map has one of the five.
  --keep-created  Links keep the creation time of the input as created_at.
  --hygiene       Each kind of link that the store cannot keep as it was is
                  counted. keep ignores it, warn accepts and counts it, reject
                  rejects the row with the kind as reason. A LIST such as
                  protected=warn,secret=reject changes the defaults:
                    protected=reject  it has a password, and would be public
                    inactive=reject   it is archived, banned, disabled or
                                      deleted, or its redirect code is 410
                    pattern=reject    the code is a regular expression
                    loop=reject       it leads to itself
                    chain=warn        it leads to another code of a short domain
                    expired=warn      it has expired, or was used up
                    starts=warn       it does not work before a later time
                    ends=warn         it ends, and --no-rules leaves that out
                    targeted=warn     it has rules by country or device
                    secret=warn       its URL has a password, token or e-mail
                                      address
                    suspect=warn      its URL has another URL in its path, or
                                      its host is http or https
                    private=warn      its host is a private address, localhost,
                                      .local or .internal
  --short-domain  A further domain of short URLs, or several with commas. With
                  those of the rows it finds links that lead to short links.`

const rulesTopic = `Links can expire, have a use limit, a type and an owner. With --rules, or with
any other flag of link rules, these columns count. (With --legacy expiry and use
limit count without it, unless --no-rules is given.)
  expires_at   a time such as 2026-01-31T18:00:00Z, a date, or Unix seconds. A
               link with a date ends at 00:00 UTC of that day
  max_uses     a whole number of 1 or more
  link_type    PERMANENT or TEMPORARY
  owner_id     any text
  ref          any text; only --identity row uses it
Names count in any case, with spaces or _. expires, expiry, expiration,
expiration_date, valid_until and end_date are names of expires_at, too;
max_visits, max_clicks, click_limit, clicks_limit and usage_limit are names of
max_uses. --map gives other columns.

An empty cell is none, and a flag stands in for it: --expires-at TIME (a date is
00:00 UTC of that day), --expires-in TIME (from --as-of, such as 2w, 90d, 12h or
1h30min), --temporary-ttl TIME (for TEMPORARY links; 8h), --max-uses N,
--link-type permanent or temporary, --owner ID.

  --identity   What a link is found by. url (the default): its URL. params: its
               URL, expiry and use limit. row: its URL and ref, where the input
               and the row stand in for an empty ref.
  --on-drift   If the link exists and a row says something else: keep (the
               default) leaves the link, update changes it, reject rejects the
               row. A link of another owner always stays.
  --revive     If the link of a row no longer works: ended (the default) brings
               it back if it has expired or was used up; all also if somebody
               deleted it; none never. Else the row is rejected: link_deleted or
               link_ended. If all links of a URL are deleted, it gets no further
               one either. A sweep forgets deleted links.

A TEMPORARY link without an owner becomes permanent if a PERMANENT row with an
owner has its URL. The mapping says in the column change what was done: updated,
claimed, revived, drifted (it differs and stays) or other_owner.`

const schemesTopic = `--scheme says how codes are made:
  sha256-base58     From the URL and the workspace. The same URL has the same
                    code everywhere, and anybody can compute it.
  keyed-base62      The same with a secret: without it nobody can tell a code
                    from a random one, with it anybody can check all of them.
  sha256-base32     As the first, in small letters and digits, without 0, 1, l
                    and o: for print, for speech, for servers that fold case.
  keyed-base32      The same with a secret.
  counter-base62    From a number that the store counts up, and a secret that
                    hides little: who has two codes knows the next ones.
  counter-permuted  From such a number, encrypted: the codes tell nothing of it.
The secret is in the file of --scheme-key-file or in the variable
BULK_SCHEME_KEY; openssl rand -base64 32 makes one. The store keeps the scheme
of each workspace, and a fingerprint of the secret, but never the secret.

  --code-length         How many characters a code has: 10 by default, 8 with
                        keyed-base32, 7 with keyed-base62 and counters.
  --max-retries         When a code is taken, how many other codes to try: 10 by
                        default, 4 with a keyed one. A counter has none to try.
  --counter-start       The counter of the store goes on with this number. At or
                        below its next number it changes nothing.
  --counter-multiplier  The numbers of counter-base62 are multiplied by it. It
                        must be that of the system whose codes you continue: of
                        cloudshortener since its second version 1315423911.
  --blocklist           No generated code contains a word of this file, a word a
                        line. Links that exist keep their codes.`
