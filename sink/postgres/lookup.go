package postgres

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/linkforge/bulk/sink"
)

// A lookup reads ranges of an index in order, and merges them with its probes, which are in
// the same order. It reads the codes first, then the keys of the probes whose URL was not
// found under its own code. If the probes are as dense as the links, one range holds them
// all, and the server does one scan. If they are sparse, each is a range of its own, and
// the server does a search for each. Two neighbouring probes share a range if fewer than
// nearby links are expected between them. The distance of their keys says how many (keys
// are hashes, so they are evenly spread), and the estimated size of the table. Probes without a
// URL have no keys: a sample of the links between them says whether they all share a range.
// (600,000 of them, all there, take 0.6 s so, and 2.6 s with a range for each.) Probes whose
// codes do not ascend like their keys nearly all have a range of their own.
//
// 3 million probes, 3 million links, batches of 12,000, one connection, with other work on
// the two cores, in seconds:
//
//	                                    codes, all there   keys, none there
//	ranges of an index, merged here     1.8 – 2.8          1.4
//	arrays, joined or = ANY             6.8                3.8 – 6.8
//	staging table by COPY, and join     3.0 + 2.5          3.0 + 4.6
//
// A search takes as long as reading about 8 links. (Lookups of 2.7, 1.35 and 0.54 million
// URLs among 5.4 million links take 1.09, 1.05 and 0.94 times as long with 4, and 1.02,
// 1.01 and 1.13 times as long with 12.) The server sends the canonical URL to be compared:
// to copy 80 bytes takes less time than to hash them on the server.
const nearby = 8

// The statements of a lookup. To send a value takes the server longer than to read it, so it
// sends runs and workspaces only if they are needed, and no key with a link by code: the
// canonical URL says whose link it is, and the kind, which is last, whether it is that link or
// an alias. Only with rules a link of the URL may have parts, so the key says whether it is that of
// the probe; if neither has parts, there is no key.
func (n names) codesInRanges(more, rules, parts bool) string {
	columns, ofRules := "l.short_code, l.canonical_url", nowColumns
	if more {
		columns, ofRules = columns+", l.run_id, l.workspace_id", rulesColumns
	}
	if rules {
		key := "CASE WHEN l.base_key IS NOT NULL THEN l.url_key END"
		if parts {
			key = "l.url_key"
		}
		columns += ", " + key + ", " + ofRules
	}
	return `SELECT ` + columns + `, l.kind
		FROM unnest($1::text[], $2::text[], $3::text[]) r(w, lo, hi)
		CROSS JOIN LATERAL (SELECT * FROM ` + n.links + ` WHERE workspace_id = r.w
			AND short_code >= r.lo AND short_code <= r.hi ORDER BY workspace_id, short_code) l`
}

// linksInRanges counts the links in ranges of codes, up to a limit for each.
func (n names) linksInRanges(limit int) string {
	return `SELECT sum(n)::int FROM unnest($1::text[], $2::text[], $3::text[]) r(w, lo, hi)
		CROSS JOIN LATERAL (SELECT count(*) AS n FROM (SELECT FROM ` + n.links + ` WHERE workspace_id = r.w
			AND short_code >= r.lo AND short_code <= r.hi ORDER BY workspace_id, short_code LIMIT ` + strconv.Itoa(limit) + `) l) c`
}

func (n names) keysInRanges() string {
	return `SELECT l.url_key FROM unnest($1::uuid[], $2::uuid[]) r(lo, hi)
		CROSS JOIN LATERAL (SELECT url_key FROM ` + n.links + `
			WHERE url_key >= r.lo AND url_key <= r.hi ORDER BY url_key) l`
}

func (n names) linksByKey(rules bool) string {
	return `SELECT ` + byKeyColumns(rules) + ` FROM ` + n.links + ` WHERE url_key = ANY($1::uuid[])`
}

// linksInKeyRanges are the links with keys in ranges.
func (n names) linksInKeyRanges(rules bool) string {
	return `SELECT ` + byKeyColumns(rules) + ` FROM unnest($1::uuid[], $2::uuid[]) r(lo, hi)
		CROSS JOIN LATERAL (SELECT * FROM ` + n.links + ` WHERE url_key >= r.lo AND url_key <= r.hi ORDER BY url_key) l`
}

func byKeyColumns(rules bool) string {
	columns := "short_code, canonical_url, run_id, workspace_id, url_key"
	if rules {
		columns += ", " + rulesColumns
	}
	return columns
}

// Lookup implements sink.Session. It visits the links that it finds by code in the order of
// the probes, then those that it finds only by key in the order of the keys. If the
// connection is lost meanwhile it does not retry, since it may have called the visitor.
func (s *session) Lookup(ctx context.Context, probes []sink.Probe, visit func(sink.Found) error) error {
	if len(probes) == 0 {
		return nil
	}
	l := &lookup{session: s, probes: probes, visit: visit, same: make([]bool, len(probes))}
	err := s.looking(ctx, "look up links", func(conn *pgx.Conn) error {
		l.conn = conn
		l.rules = slices.ContainsFunc(probes, func(p sink.Probe) bool { return p.WantRules })
		return l.run(ctx)
	})
	if l.stop != nil {
		return l.stop
	}
	return err
}

// looking does something with a connection for lookups. It does not do it again.
func (s *session) looking(ctx context.Context, op string, do func(*pgx.Conn) error) error {
	if err := s.store.lookups.Acquire(ctx, 1); err != nil {
		return context.Cause(ctx)
	}
	defer s.store.lookups.Release(1)
	var conn *pgx.Conn
	err := s.store.retry(ctx, "connect to "+op, func(ctx context.Context) (err error) {
		conn, err = s.store.acquire(ctx)
		return err
	})
	if err != nil {
		return err
	}
	defer s.store.release(conn)
	return classify(ctx, op, do(conn))
}

// A lookup is one call of Lookup.
type lookup struct {
	session *session
	conn    *pgx.Conn
	probes  []sink.Probe
	visit   func(sink.Found) error
	stop    error  // of the visitor
	same    []bool // for each probe: its URL was found
	rules   bool   // a probe wants them
	ofFound sink.Rules
	near    uint64 // the distance of two keys, in their first 8 bytes, with nearby links between them
	dense   bool   // fewer than nearby links are expected between two probes without a URL
}

func (l *lookup) run(ctx context.Context) error {
	if err := l.estimate(ctx); err != nil {
		return err
	}
	if l.probes[0].Code != nil {
		if err := l.sample(ctx); err != nil {
			return err
		}
		if err := l.byCode(ctx); err != nil {
			return err
		}
	}
	return l.byKey(ctx)
}

// estimate calculates near, once in a session and after each load.
func (l *lookup) estimate(ctx context.Context) error {
	if l.near = l.session.near.Load(); l.near > 0 {
		return nil
	}
	// The planner's own estimate: links a page when last counted, pages now.
	var links float64
	err := l.conn.QueryRow(ctx, `SELECT (CASE WHEN relpages > 0 AND reltuples > 0 THEN reltuples / relpages ELSE 40 END
			* (pg_relation_size(oid) / current_setting('block_size')::int))::float8
		FROM pg_class WHERE oid = to_regclass($1)`, l.session.store.names.links).Scan(&links)
	if err != nil {
		return err
	}
	l.near = uint64(0x1p63 / max(links, 2*nearby) * 2 * nearby)
	l.session.near.Store(l.near)
	return nil
}

// A sample has samples windows of sampled neighbouring probes.
const (
	samples = 8
	sampled = 16
)

// sample finds out whether probes without a URL are dense. Of few probes it takes no sample.
func (l *lookup) sample(ctx context.Context) error {
	step := len(l.probes) / samples
	if step < sampled {
		return nil
	}
	var workspaces, low, high array
	for i := 0; i+sampled <= len(l.probes); i += step {
		first, last := &l.probes[i], &l.probes[i+sampled-1]
		if first.Canonical == nil && bytes.Equal(first.Workspace, last.Workspace) {
			workspaces.add(first.Workspace)
			low.add(first.Code)
			high.add(last.Code)
		}
	}
	if workspaces.n == 0 {
		return nil
	}
	params := [][]byte{workspaces.encode(textOID), low.encode(textOID), high.encode(textOID)}
	return query(ctx, l.conn, l.session.store.names.linksInRanges(sampled*nearby), params, func(row [][]byte) error {
		l.dense = binary.BigEndian.Uint32(row[0]) < workspaces.n*sampled*nearby/2 // half: each window counts up to the limit only
		return nil
	})
}

// byCode finds the owners of the probes' codes.
func (l *lookup) byCode(ctx context.Context) error {
	at := 0
	more := !bytes.Equal(l.probes[0].Workspace, l.probes[len(l.probes)-1].Workspace) ||
		slices.ContainsFunc(l.probes, func(p sink.Probe) bool { return p.WantRun })
	parts := slices.ContainsFunc(l.probes, func(p sink.Probe) bool { return p.Parts })
	ahead, keyAt := 0, 2
	if more {
		keyAt = 4
	}
	return query(ctx, l.conn, l.session.store.names.codesInRanges(more, l.rules, parts), l.codeRanges(), func(row [][]byte) error {
		if ahead < at+touchAhead/2 {
			ahead += l.touch(ahead)
		}
		for at < len(l.probes) && compareCode(&l.probes[at], row, more) < 0 {
			at++
		}
		if at > 0 && compareCode(&l.probes[at-1], row, more) >= 0 {
			return fmt.Errorf("links come out of order: code %q after probe %d", row[0], at)
		}
		for i := at; i < len(l.probes) && compareCode(&l.probes[i], row, more) == 0; i++ {
			alias := isAlias(row[len(row)-1])
			same := !alias && bytes.Equal(row[1], l.probes[i].Canonical) && (!l.rules || row[keyAt] == nil || bytes.Equal(row[keyAt], l.probes[i].Key[:]))
			if err := l.found(i, row, keyAt, same, alias); err != nil {
				return err
			}
		}
		return nil
	})
}

// touchAhead is the number of probes whose URLs are read ahead.
const touchAhead = 16

// touch reads a few bytes of the URLs of the next probes, and returns the number of these
// probes. Cache misses take less time if they do not wait for each other.
func (l *lookup) touch(from int) int {
	next := l.probes[from:min(from+touchAhead, len(l.probes))]
	var sum byte
	for i := range next {
		if url := next[i].Canonical; len(url) > 0 {
			sum += url[0] + url[min(64, len(url)-1)] + url[len(url)-1]
		}
	}
	runtime.KeepAlive(sum) // or the compiler would leave out the reads
	return len(next)
}

// compareCode compares a probe with a row of codesInRanges. If rows have no workspace (more), it is
// that of all probes.
func compareCode(p *sink.Probe, row [][]byte, more bool) int {
	c := 0
	if more {
		c = bytes.Compare(p.Workspace, row[3])
	}
	return cmp.Or(c, bytes.Compare(p.Code, row[0]))
}

// found visits the link in row, which has the code or the URL of the probe, and its url_key in a column
// with the run before it or, if that is column 2, without.
func (l *lookup) found(at int, row [][]byte, keyAt int, same, alias bool) error {
	if same {
		l.same[at] = true
	}
	f := sink.Found{Probe: at, Same: same, Alias: alias, Code: row[0], Canonical: row[1]}
	if keyAt == 4 {
		f.Run = int32(binary.BigEndian.Uint32(row[2]))
	}
	if l.rules {
		readRules(&l.ofFound, row[keyAt+1:])
		f.Rules = &l.ofFound
		copy(f.Key[:], row[keyAt])
	}
	l.stop = l.visit(f)
	return l.stop
}

// isAlias reports whether a kind is that of an alias.
func isAlias(kind []byte) bool { return string(kind) == "alias" }

// damaged is an error if the link in row, which has the key of a probe, has another URL.
func damaged(p *sink.Probe, row [][]byte) error {
	if bytes.Equal(row[1], p.Canonical) && bytes.Equal(row[3], p.Workspace) {
		return nil
	}
	return fmt.Errorf("the store is damaged: the link %q in workspace %q has the url_key of %q, but its canonical URL is %q",
		row[0], row[3], p.Canonical, row[1])
}

// byKey finds the links of probes whose URL has another code.
func (l *lookup) byKey(ctx context.Context) error {
	var order []int // probes by key
	for i := range l.probes {
		if !l.same[i] && l.probes[i].Canonical != nil {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return bytes.Compare(l.probes[a].Key[:], l.probes[b].Key[:]) })
	if l.probes[0].Code == nil { // nearly all may have links
		return query(ctx, l.conn, l.session.store.names.linksInKeyRanges(l.rules), l.keyRanges(order), l.foundByKey(order))
	}
	var hits []int
	at := 0
	err := query(ctx, l.conn, l.session.store.names.keysInRanges(), l.keyRanges(order), func(row [][]byte) error {
		for at < len(order) && bytes.Compare(l.probes[order[at]].Key[:], row[0]) < 0 {
			at++
		}
		if at > 0 && bytes.Compare(l.probes[order[at-1]].Key[:], row[0]) >= 0 {
			return fmt.Errorf("keys come out of order: %x", row[0])
		}
		for k := at; k < len(order) && sink.Key(row[0]) == l.probes[order[k]].Key; k++ {
			hits = append(hits, order[k])
		}
		return nil
	})
	if err != nil || len(hits) == 0 {
		return err
	}
	var keys array
	for _, i := range hits {
		keys.add(l.probes[i].Key[:])
	}
	return query(ctx, l.conn, l.session.store.names.linksByKey(l.rules), [][]byte{keys.encode(uuidOID)}, l.foundByKey(hits))
}

// foundByKey visits links, in rows of byKeyColumns, that have the key of a probe. The probes are given
// in the order of their keys.
func (l *lookup) foundByKey(order []int) func(row [][]byte) error {
	return func(row [][]byte) error {
		from, _ := slices.BinarySearchFunc(order, row[4], func(i int, key []byte) int { return bytes.Compare(l.probes[i].Key[:], key) })
		for ; from < len(order) && sink.Key(row[4]) == l.probes[order[from]].Key; from++ {
			if err := damaged(&l.probes[order[from]], row); err != nil {
				return err
			}
			if err := l.found(order[from], row, 4, true, false); err != nil {
				return err
			}
		}
		return nil
	}
}

// query calls each with every row. Parameters and columns are in binary format.
func query(ctx context.Context, conn *pgx.Conn, sql string, params [][]byte, each func(row [][]byte) error) error {
	if params == nil {
		return nil
	}
	statement, err := conn.Prepare(ctx, sql, sql)
	if err != nil {
		return err
	}
	binary := []int16{1}
	rows := conn.PgConn().ExecStatement(ctx, statement, params, binary, binary)
	for n := 1; rows.NextRow(); n++ {
		if err = each(rows.Values()); err == nil && n%256 == 0 { // all rows may be there before pgx sees that ctx has ended
			err = context.Cause(ctx)
		}
		if err != nil {
			break
		}
	}
	if err != nil {
		// To read the rest of the answer would take longer than a new connection.
		hangUp(conn)
		_, _ = rows.Close()
		return err
	}
	_, err = rows.Close()
	return err
}
