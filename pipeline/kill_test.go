package pipeline_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/linkforge/bulk/pipeline"
	"github.com/linkforge/bulk/pipeline/fsys/fsystest"
	"github.com/linkforge/bulk/pipeline/legacy"
	"github.com/linkforge/bulk/pipeline/outdir"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/sink"
	"github.com/linkforge/bulk/sink/postgres"
	"github.com/linkforge/bulk/sink/sqlite"
)

// killAt makes the test binary a run of a.csv over the store that killDB names.
// The run kills itself "before N", before its N-th call of the file system or of
// the store, "after N", after it, or "chunk N", once N chunks are committed. With
// N = 0 it does not, and leaves the numbers of all three in the file "calls". A mode in
// killLegacy makes it a run with legacy codes and short generated ones, an identity in killRules
// one with link rules, a scheme and words in killScheme one of that scheme without these words.
const (
	killAt     = "BULK_PIPELINE_TEST_KILL"
	killDB     = "BULK_PIPELINE_TEST_DB"
	killLegacy = "BULK_PIPELINE_TEST_LEGACY"
	killRules  = "BULK_PIPELINE_TEST_RULES"
	killScheme = "BULK_PIPELINE_TEST_SCHEME"
)

var kinds = []string{"before", "after", "chunk"}

// killedRun is the process that is killed. At the point "before 0" it is a run like any other, which a
// test has in its own process.
func killedRun(point, dsn string) error {
	when, digits, _ := strings.Cut(point, " ")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return err
	}
	die := func() error {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // not a step further
	}
	counts := map[string]*countdown{}
	for _, kind := range kinds {
		counts[kind] = newCountdown(0, die)
	}
	counts[when].left.Store(n)
	store, err := openKillable(dsn)
	if err != nil {
		return err
	}
	cfg := base(3)
	cfg.Inputs, cfg.Out, cfg.AsOf, cfg.Workers, cfg.TempDir = []string{"a.csv"}, "out", asOf, 2, "tmp"
	part := 1000
	if cfg.Legacy = legacy.Mode(os.Getenv(killLegacy)); cfg.Legacy != legacy.Off {
		cfg.CodeLength, part = 2, 100
		cfg.Source.Map = map[string]string{"code": "code", "kind": "kind"}
	}
	if name := os.Getenv(killRules); name != "" {
		cfg.Rules, cfg.OnDrift, part = &rules.Flags{}, rules.Update, 100
		if cfg.Rules.Identity, err = rules.ParseIdentity(name); err != nil {
			return err
		}
	}
	if scheme, words, ok := strings.Cut(os.Getenv(killScheme), " "); ok {
		cfg.Scheme, cfg.CodeLength, part = pipeline.Scheme{Name: scheme, Secret: keyed.Secret}, 0, min(part, 300)
		if scheme == keyed.Name {
			cfg.CodeLength, cfg.MaxRetries, part = 4, 1, 100
		}
		cfg.Scheme.Words = blocklist(strings.Split(words, ","))
	}
	cfg.SpillAt(64 << 10)
	cfg.UseFS(fsystest.FS{Before: counts["before"].call, After: func(operation string) { counts["after"].call(operation) }})
	cfg.Store = &committing{&faultyStore{Store: store, countdown: counts["before"]}, counts, part}
	_, err = pipeline.Run(context.Background(), cfg)
	var calls string
	for _, kind := range kinds {
		calls += fmt.Sprintln(-counts[kind].left.Load())
	}
	return errors.Join(err, store.Close(), os.WriteFile("calls", []byte(calls), 0o666))
}

func openKillable(dsn string) (sink.Store, error) {
	if file, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		return sqlite.Open(context.Background(), file)
	}
	return postgres.Open(context.Background(), dsn, postgres.Options{})
}

// committing is a store that commits each so many links, and counts the calls that are
// done.
type committing struct {
	sink.Store
	counts map[string]*countdown
	part   int
}

func (c *committing) Lock(ctx context.Context, workspaces []string, opts sink.LockOptions) (sink.Session, error) {
	s, err := c.Store.Lock(ctx, workspaces, opts)
	if err != nil {
		return nil, err
	}
	return &committingSession{s, c.counts, c.part}, c.counts["after"].call("lock")
}

type committingSession struct {
	sink.Session
	counts map[string]*countdown
	part   int
}

func (s *committingSession) Start(ctx context.Context, run sink.Run) (sink.Run, error) {
	run, err := s.Session.Start(ctx, run)
	return run, errors.Join(err, s.counts["after"].call("start"))
}

func (s *committingSession) Load(ctx context.Context, run sink.Run, chunks iter.Seq2[[]sink.Link, error]) error {
	return inParts(s, "chunk", chunks, func(part iter.Seq2[[]sink.Link, error]) error { return s.Session.Load(ctx, run, part) })
}

// inParts commits chunks in parts, and counts each.
func inParts[T any](s *committingSession, operation string, chunks iter.Seq2[[]T, error], commit func(part iter.Seq2[[]T, error]) error) error {
	for chunk, err := range chunks {
		if err != nil {
			return err
		}
		for part := range slices.Chunk(chunk, s.part) {
			if err := commit(func(yield func([]T, error) bool) { yield(part, nil) }); err != nil {
				return err
			}
			if err := s.counts["chunk"].call(operation); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *committingSession) SetRules(ctx context.Context, workspaces []string) error {
	return errors.Join(s.Session.SetRules(ctx, workspaces), s.counts["after"].call("rules"))
}

func (s *committingSession) SetScheme(ctx context.Context, workspaces []string, scheme sink.Scheme) error {
	return errors.Join(s.Session.SetScheme(ctx, workspaces, scheme), s.counts["after"].call("scheme"))
}

func (s *committingSession) Reserve(ctx context.Context, run sink.Run, n int64) ([]sink.Range, error) {
	numbers, err := s.Session.Reserve(ctx, run, n)
	return numbers, errors.Join(err, s.counts["after"].call("reserve"))
}

func (s *committingSession) Change(ctx context.Context, run sink.Run, chunks iter.Seq2[[]sink.Change, error]) error {
	return inParts(s, "change", chunks, func(part iter.Seq2[[]sink.Change, error]) error { return s.Session.Change(ctx, run, part) })
}

func (s *committingSession) Loaded(ctx context.Context, run sink.Run) error {
	return errors.Join(s.Session.Loaded(ctx, run), s.counts["after"].call("loaded"))
}

func (s *committingSession) Finish(ctx context.Context, run sink.Run) error {
	return errors.Join(s.Session.Finish(ctx, run), s.counts["after"].call("finish"))
}

// A killableStore can be made, as a copy of another one that nobody has open, or, if that is "", empty.
// And its links can be looked at.
type killableStore struct {
	name  string
	fresh func(t *testing.T, like string) (dsn string)
	links func(t *testing.T, dsn string) []string
}

var killableStores = []killableStore{
	{"sqlite", freshSQLite, func(t *testing.T, dsn string) []string {
		return dump(t, filepath.Dir(strings.TrimPrefix(dsn, "sqlite:")))
	}},
	{"postgres", freshPostgres, dumpPostgres},
}

func freshSQLite(t *testing.T, like string) string {
	dir := t.TempDir()
	if file, ok := strings.CutPrefix(like, "sqlite:"); ok {
		must(t, os.CopyFS(dir, os.DirFS(filepath.Dir(file))))
	}
	return "sqlite:" + filepath.Join(dir, "links.db")
}

func freshPostgres(t *testing.T, like string) string {
	if like == "" {
		return server.Database(t)
	}
	config, err := pgx.ParseConfig(like)
	must(t, err)
	return server.Database(t, "TEMPLATE "+config.Database)
}

// dumpPostgres returns the links, and the ledger, which is empty after a run.
func dumpPostgres(t *testing.T, dsn string) []string {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	must(t, err)
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, `SELECT concat_ws('|', workspace_id, short_code, url_key, canonical_url, original_url, run_id,
		created_at, updated_at) FROM links UNION ALL SELECT concat('ledger ', l) FROM links_ledger l ORDER BY 1`)
	must(t, err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(t, err)
	return lines
}

// content returns the links and the runs of a store, but when these ran.
func (k killableStore) content(t *testing.T, dsn string) []string {
	t.Helper()
	store, err := openKillable(dsn)
	must(t, err)
	runs, err := store.Runs(context.Background())
	must(t, err)
	var changed []string
	err = store.ScanRules(context.Background(), func(l *sink.Stored) error {
		r := l.Rules
		changed = append(changed, fmt.Sprintf("%s %x %v %d %d %s %s %s %s %d %s", l.Code, l.Base, r.Expires, r.MaxUses, r.Uses, r.Type, r.Owner, r.Ref, r.Status, r.ChangedRun, r.Change))
		return nil
	})
	schemes := schemesOf(t, store)
	must(t, errors.Join(err, store.Close()))
	lines := append(k.links(t, dsn), changed...)
	for _, w := range slices.Sorted(maps.Keys(schemes)) {
		lines = append(lines, fmt.Sprintf("%s %+v", w, schemes[w]))
	}
	for _, r := range runs {
		lines = append(lines, fmt.Sprint(r.ID, r.Fingerprint, r.State, r.AsOf, r.Counts, r.ManifestSHA256, r.Numbers))
	}
	return lines
}

// A run that is killed before or after any call, of the file system or of the
// store, or once any chunk is committed, and repeated leaves the reports, the
// links and the runs of an undisturbed one: into an empty store, and into one
// that has a part of the links.
func TestKill(t *testing.T) {
	points, fillings := 6, []bool{false, true}
	if testing.Short() {
		points, fillings = len(kinds), []bool{true}
	}
	points = soaked(t, points)
	for _, store := range killableStores {
		for _, filled := range fillings {
			t.Run(fmt.Sprintf("%s/filled=%v", store.name, filled), func(t *testing.T) {
				if store.name == "postgres" {
					server.Need(t)
				}
				testKill(t, store, filled, points, killInput, 4000)
			})
		}
	}
}

// So does one that keeps legacy codes: with conflicts, aliases, twins, and generated codes that
// other URLs have or want.
func TestKillLegacy(t *testing.T) {
	points := soaked(t, len(kinds))
	for i, store := range killableStores {
		for j, of := range []string{string(legacy.Keep), string(legacy.Both), string(legacy.Keep) + " params"} {
			if killsElsewhere(i, j) {
				continue
			}
			t.Run(store.name+"/"+of, func(t *testing.T) {
				mode, identity, _ := strings.Cut(of, " ")
				t.Setenv(killLegacy, mode)
				input := killLegacyInput
				if identity != "" {
					t.Setenv(killRules, identity)
					input = killPartsInput
				}
				testKill(t, store, true, points, input, 2000)
			})
		}
	}
}

// So does one that changes links: updated, claimed and revived ones, beside new ones.
func TestKillRules(t *testing.T) {
	points := soaked(t, len(kinds))
	for i, store := range killableStores {
		for j, identity := range []string{"url", "params"} {
			if killsElsewhere(i, j) {
				continue
			}
			t.Run(store.name+"/"+identity, func(t *testing.T) {
				t.Setenv(killRules, identity)
				testKill(t, store, true, points, killRulesInput, 2000)
			})
		}
	}
}

// So does one that sets the scheme of its workspaces, with keyed codes that others have or want, and
// words that none contains.
func TestKillScheme(t *testing.T) {
	points := soaked(t, len(kinds))
	c := schemeKinds[4].crowded()
	for i, store := range killableStores {
		if killsElsewhere(i, 0) {
			continue
		}
		t.Run(store.name, func(t *testing.T) {
			t.Setenv(killScheme, keyed.Name+" "+strings.Join(c.words, ","))
			testKill(t, store, store.name == "sqlite", points, c.killInput, 1000)
		})
	}
}

// killsElsewhere reports whether a kind of run on a store is left to make soak: each store has every
// other kind here.
func killsElsewhere(store, kind int) bool { return os.Getenv("BULK_SOAK") == "" && (store+kind)%2 > 0 }

// soaked returns how many runs are to be killed: so many, or as many as BULK_SOAK says.
func soaked(t *testing.T, points int) int {
	t.Helper()
	if v := os.Getenv("BULK_SOAK"); v != "" {
		var err error
		if points, err = strconv.Atoi(v); err != nil {
			t.Fatal(err)
		}
	}
	return points
}

// testKill kills runs of n rows that input writes. A filled store has some of these rows.
func testKill(t *testing.T, store killableStore, filled bool, points int, input func(t *testing.T, n int), n int) {
	t.Chdir(t.TempDir())
	must(t, os.Mkdir("tmp", 0o777))
	before := ""
	if filled {
		before = store.fresh(t, "")
		input(t, n/4)
		must(t, killedRun("before 0", before))
	}
	input(t, n)
	fill := func() string {
		must(t, os.RemoveAll("out"))
		return store.fresh(t, before)
	}
	dsn := fill()
	must(t, killedRun("before 0", dsn))
	want, content, calls := readReports(t), store.content(t, dsn), readCalls(t)
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	killed := 0
	for i := range points {
		kind := i % len(kinds)
		point := fmt.Sprintf("%s %d", kinds[kind], 1+rnd.IntN(calls[kind]))
		dsn := fill()
		if execKilled(t, point, dsn) {
			killed++
			if err := killedRun("before 0", dsn); err != nil && !errors.Is(err, outdir.ErrExists) {
				t.Fatalf("after %s: %v", point, err)
			}
		}
		where := fmt.Sprintf("killed %s (seed %d)", point, seed)
		for name, text := range readReports(t) {
			if text != want[name] {
				t.Fatalf("%s: %s differs: %s, want %s", where, name, firstDifference(text, want[name]), firstDifference(want[name], text))
			}
		}
		if got := store.content(t, dsn); !slices.Equal(got, content) {
			t.Fatalf("%s: the store has %d lines, want %d", where, len(got), len(content))
		}
		if left, err := os.ReadDir("tmp"); err != nil || len(left) > 0 {
			t.Fatalf("%s: temporary files %v, %v", where, left, err)
		}
		clean(t)
	}
	if killed < points/2 {
		t.Errorf("only %d of %d runs were killed", killed, points)
	}
	t.Logf("%v calls, %d of %d runs were killed", calls, killed, points)
}

// killInput writes a.csv.
func killInput(t *testing.T, n int) {
	t.Helper()
	list := rows(8, 300)
	for i := range n {
		list = append(list, fmt.Sprintf("http://example.com/%d,%s,", i*7919%(n*8/9), []string{"", "red"}[i%2]))
	}
	write(t, "a.csv", csvFile(list))
}

// killInput writes a.csv with the first n rows of the case, and n that contest nothing.
func (c schemeCase) killInput(t *testing.T, n int) {
	t.Helper()
	c.rows = slices.Clip(c.rows[:min(n, len(c.rows))])
	for i := range n {
		c.rows = append(c.rows, schemeRow{"red", identity{url: fmt.Sprintf("http://example.com/quiet/%d", i)}})
	}
	write(t, "a.csv", c.csv(0))
}

// killLegacyInput writes a.csv with legacy codes.
func killLegacyInput(t *testing.T, n int) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(9, 9))
	url := func() string { return fmt.Sprintf("http://example.com/%d", rnd.IntN(600)) }
	var b strings.Builder
	b.WriteString("url,team,code,kind\n")
	for i := range n {
		u, team := url(), []string{"", "", "red"}[rnd.IntN(3)]
		code := ""
		switch rnd.IntN(8) {
		case 0, 1:
			code = fmt.Sprint("k", i)
		case 2:
			code = fmt.Sprintf("%s%d", []string{"t", "T"}[rnd.IntN(2)], rnd.IntN(200)) // mostly taken
		case 3:
			code = codeAt(url(), cmp.Or(team, "demo"), rnd.IntN(2), 2) // wanted
		case 4:
			code = codeAt(u, cmp.Or(team, "demo"), 0, 2) // its own
		}
		fmt.Fprintf(&b, "%s%s,%s,%s,%s\n", u, []string{"", "#x"}[rnd.IntN(2)], team, code, []string{"", "alias", "link"}[rnd.IntN(3)])
	}
	write(t, "a.csv", b.String())
}

// killPartsInput writes a.csv with legacy codes and parameters.
func killPartsInput(t *testing.T, n int) {
	t.Helper()
	killLegacyInput(t, n)
	lines := strings.Split(strings.TrimSpace(read(t, "a.csv")), "\n")
	for i := range lines {
		lines[i] += []string{",,", ",2027-01-01,", ",,5"}[i%3]
	}
	lines[0] = "url,team,code,kind,expires_at,max_uses"
	write(t, "a.csv", strings.Join(lines, "\n")+"\n")
}

// killRulesInput writes a.csv with parameters, others in each number of rows: most links change that
// an input of fewer rows has made.
func killRulesInput(t *testing.T, n int) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(9, uint64(n)))
	pick := func(texts ...string) string { return texts[rnd.IntN(len(texts))] }
	var b strings.Builder
	b.WriteString("url,team,expires_at,max_uses,link_type,owner_id\n")
	for range n {
		fmt.Fprintf(&b, "http://example.com/%d%s,%s,%s,%s,%s,%s\n", rnd.IntN(1200), pick("", "#x"), pick("", "", "red"),
			pick("", "", "2025-01-01", "2026-06-01", "2027-01-01"), pick("", "", "1", "5"), pick("", "PERMANENT", "TEMPORARY"), pick("", "ann", "bob"))
	}
	write(t, "a.csv", b.String())
}

// readCalls returns the number of calls of each kind.
func readCalls(t *testing.T) (calls []int) {
	t.Helper()
	data := read(t, "calls")
	for _, line := range strings.Fields(data) {
		n, err := strconv.Atoi(line)
		if err != nil || n < 2 {
			t.Fatalf("calls %q", data)
		}
		calls = append(calls, n)
	}
	return calls
}

// execKilled runs the job in a process of its own, and reports whether it was
// killed; if not, it must succeed, or find that it had.
func execKilled(t *testing.T, point, dsn string) bool {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), killAt+"="+point, killDB+"="+dsn)
	output, err := cmd.CombinedOutput()
	if err == nil {
		return false
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signal() == syscall.SIGKILL {
		return true
	}
	if !strings.Contains(string(output), outdir.ErrExists.Error()) {
		t.Fatalf("%s: %v: %s", point, err, output)
	}
	return false
}
