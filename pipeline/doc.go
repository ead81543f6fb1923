// Package pipeline turns lists of URLs into stored short links and a report. [Run] is the
// whole job:
//
//	store, err := sqlite.Open(ctx, "links.db") // or postgres.Open, or a sink.Store of your own
//	if err != nil {
//		return err
//	}
//	defer store.Close()
//	result, err := pipeline.Run(ctx, pipeline.Config{
//		Inputs: []string{"links.csv"}, Workspace: "demo", Store: store, Out: "links.bulk",
//	})
//	if err != nil {
//		return err
//	}
//	fmt.Println(result.Counts.Created, "links created, see", result.Out)
//
// The example of Run is a whole program, which also bounds the memory and reads the mapping back.
//
//   - [Config] says what a run does; zero in a field means its default. [Config.Validate] tells all
//     that is wrong with it. A [UsageError] is a run that cannot start as it was asked for.
//   - Rejected rows are no error, unless all rows are rejected, or more than Config.MaxRejects
//     allows. [Result] counts them by reason, and rejects.csv in Result.Out has them.
//   - Cancel ctx to stop a run. If it was stopped, if the store did not answer, or if the process was
//     killed, the same Run with the same Config resumes it.
//   - [Preview] tells beforehand what Run would do. [Delete] deletes the links that a list names.
//     [Status] tells another goroutine how far a run is.
//   - Packages verify, diff, explain and estimate, beside this one, are other commands; readback
//     reads mappings and rejects.
//
// The rest of this page is for those who change the code: how it is laid out, and how a row travels
// through it. What bounds the memory stands at the end ("Memory").
//
// # The way of a row
//
//	inputs ──► source ──► intake ──► extsort ──► settle ──► emit ──► report ──► outdir
//	           batches    records    buckets    decisions    └─────► sink (the store)
//	                         └─────► extsort ──────────────► emit
//	                      rejects    by place
//
// Each of these is a package:
//
//  1. Package source opens each input, finds out its format and columns, and reads it in
//     batches of rows, whose text is UTF-8 if its encoding was given (package charset). A row carries its provenance: input, number, byte offset.
//  2. Package intake gives each row its canonical URL (canon) and hash (codegen), in
//     parallel, and makes a record of it (package record). A row that has none becomes a
//     reject, which goes into a sort of its own.
//  3. Package extsort sorts the records by workspace, code of salt 0, canonical URL,
//     original URL, carried cells, input and row. What does not fit in memory goes to a
//     spill file. Records come back in buckets.
//  4. Package settle visits the buckets. It asks the store which URLs and codes it has, and
//     decides the code of every URL. URLs that want one code go to package assign, which
//     knows the rule and nothing else. The result is a Settlement.
//  5. Package emit visits the buckets again. It writes the mapping and the collisions, and
//     hands new links to the store in the order of its index. Then it writes the rejects.
//  6. Package report formats these files, package outdir writes them into a hidden
//     directory and renames it at the end, and package manifest describes the run.
//
// [Run] calls these stages one after the other. Values flow one way: each stage takes what
// it needs as arguments and returns a value, and none knows the run that calls it. A test
// (cmd/bulk/imports_test.go) holds the rule.
//
// # Legacy codes
//
// A row of a run with Config.Legacy may bring a code along. Source cuts it out of its cell
// (package profile knows how other shorteners write their exports), package legacy says
// whether it may be kept, and the record has it. If codes are kept, each is a claim:
//
//	intake ──► extsort ──► claim ──► extsort ──► settle ──► emit ──► extsort ──► sink
//	           claims      verdicts by record                        links by code
//
// Package claim goes over the claims in the order of the codes, asks the store, and says of
// each whether it is won. Settle takes these verdicts beside the records: it decides the code
// of each row (settle/kept.go), and generates codes only for URLs that have none. Emit sorts
// the new links by code before they are loaded, since that is not the order of the records.
//
// # What a link was beyond code and URL
//
// A run with legacy codes, or with one of the options of Config about it, looks at further columns
// of its inputs (columns.Table.Roles). Intake asks package hygiene what the store cannot keep, and
// rejects, counts or ignores it; with Config.Domains the domain of a code makes its workspace.
// Package along says which carried cells go along with a link: emit makes the attributes
// (package attrs) and the creation time of a new link of them, so the record needs no more than
// before. What has expired depends on as_of: a run that resumes one of another as_of reads its
// inputs once more (run.go, errOtherTime).
//
// # Link rules
//
// With Config.Rules rows have parameters: expiry, use limit, type, owner. Package rules reads them and
// knows what a row does to its link. Intake puts them into the record, together with the parts of the
// identity, which are a part of the hash: so a URL can have several links, and all that is said here
// of URLs goes for identities. Settle asks the store for the rules of links, and judges the rows of
// each identity while the answer is at hand (settle/rules.go); where legacy codes are kept, once all
// codes are settled (settle/keptrules.go). Rows about which there is something to say have a byte;
// changes of links that exist go into a sort of their own and to the store in the order of codes:
//
//	settle ──► extsort ──► sink.Session.Change
//	           changes by code
//
// The mapping shows what the link of a row has after the run. Where that is not what the row says, settle
// files it (settle/shown.go) by bucket and record, and emit reads it bucket by bucket.
//
// A plain run does the same in a workspace that has links with rules, which the store tells.
//
// # Campaigns
//
// With Config.Campaign a row becomes several links, its variants: package campaign makes them, and knows
// cells and URLs only. Package judge rejects the row as a whole or lets it pass; then intake makes a
// record of each variant, whose original URL is that with the parameters; the URL of the input follows
// its carried cells. From there on a variant is a row, which has a number in its place. Emit reads the
// values of the parameters out of the original URL, and counts links by them.
//
// With Config.TargetBase package judge resolves URLs that have neither scheme nor host (canon.Base). The
// record has the resolved one as its original URL, and that of the input likewise.
//
// # Tasks
//
// Package stage does a run in tasks, which share nothing but a directory, out of the same stages: a task of
// map is intake of one input (intake.OpenOne), one of reduce is a survey of a part of the records
// (settle.Survey) and emit of that. What the parts decide together is settled by settle.Coder, as in a run,
// and comes back as an amendment (settle.Settlement.Amend). [PlanStages] and [CommitStages] are its ends. The
// directory beam is another module: it has an engine do the tasks.
//
// # Deletes
//
// A delete has the inputs, the sorts and the output directory of a run, and a way of its own between
// them:
//
//	inputs ──► source ──► remove ──► extsort ──► remove ──► extsort ──► report ──► outdir
//	           batches    records               └──► sink  rows by place
//
// Package remove sorts what the rows name, hands it to the store, which marks the links, and writes
// what became of each row. Nothing of it is in the store but the marks: what an interrupted delete
// has not marked, the same delete marks when it is repeated.
//
// # What is told
//
// What a run, a preview, a verify, a diff, a delete, a sweep or an undo found and did, package account
// says as facts: a key, a count or a text, an example, what to do. Its renderers are in cmd/bulk, one for
// each medium: sentences.go, loglines.go, screen.go, factsjson.go and pagefacts.go. A new fact is added in package
// account, and nowhere else; cmd/bulk/account_test.go adds one. The manifest and the timings of a finished run
// give the same facts (account.OfDirectory), but for what only the process knew.
//
// A page for people (bulk report) shows these facts, what package survey counts in one pass over the
// mapping, and the timings. Package page makes it; topk counts texts in bounded memory.
//
// # Changing the mapping
//
// The columns of the mapping are a table (report/own.go), over which all writers, RowDigest,
// readback, verify and diff walk. A new column touches, in this order: report/report.go (Row),
// report/own.go, and emit/format.go, which fills it in. If it comes from the input, intake/worker.go
// puts it into the record and package record decodes it. If it is decided when codes are settled, it
// is a field of settle.Decision, and of record.Placed for a mapping in the order of the input. Then
// verify/mapping_rows.go checks it (and inputs_replay.go if the input tells it), diff/links.go says whether it is
// compared, and report/README.md what it is.
//
// # A new flag, reason, scheme, program
//
// A flag that can change a result is declared at cmd/bulk/run.go, in Config (config.go), in Config.terms
// (describe.go), and in package terms (terms.go, options.go), which the manifest, verify and diff read. The
// stage that obeys it comes on top. One that only says how files are written is listed in settings
// (diff/side.go), too.
//
// A reason of rejects is found in package judge, which intake and verify call; package outcome has its name
// and its words, and report/README.md says what it means. A kind of link that cannot be kept is a line in
// package hygiene.
//
// A scheme is a file of package codegen and a line in its table (Specs). A program whose exports are read is
// an entry of profile/table.go, with a file in testdata/exports; a word for a column is one of
// profile/vocabulary.go.
//
// A fact that people are told is added in package account.
//
// # Files of this package
//
//	config.go    what a run is told (Config), and what is wrong with it
//	run.go       the steps of a run (Run), and of one attempt to store and write
//	retry.go     when an attempt is made again
//	output.go    where the files go, whether the run was finished before, and which one is resumed
//	program.go   what programs share: the secret of a scheme as they read it, their version
//	profile.go   whether the links of a workspace have the run's profile of canonical URLs
//	fold.go      whether workspaces fold case, and when the rows are read once more because of that
//	preview.go   what a run would do, told without doing it; sample.go is the mapping of that
//	delete.go    what a delete is told (DeleteConfig), and its steps (Delete)
//	reports.go   the files of an attempt, and whether the books balance
//	rules.go     whether rows are held against the rules of links
//	stages.go    a run in tasks: what it is told, and what it cannot do
//	load.go      the links of a mapping in parts go into a store (package load)
//	export.go    the links of a store, and what is told of them
//	describe.go  the manifest of a run, and its fingerprint
//	paths.go     inputs and stores that lie where the output goes
//	budget.go    how Config.Memory is divided
//	meter.go     how long it took; status.go tells how far it is
//	room.go      whether the disk suffices for what is spilled
//
// # Invariants
//
//   - Of the records of one URL, the first in the order of the sort is the link. The others
//     are duplicates. The order is total and does not depend on workers, batches or the order
//     of the input, so no output does.
//   - Nothing is stored before every row is settled. The locks on the workspaces are held
//     from before the first lookup until the output directory has been renamed and the run
//     marked finished. (A dry run has no locks. Its session is closed once all is settled.)
//   - Whatever an interrupted attempt left in the store bears the id of its run. An attempt
//     that resumes the run counts those links as created. So a conflict with another writer,
//     a store that fails for a while and a process that was killed are all handled alike:
//     settle again, load what is missing, write the reports anew.
//   - The output directory changes only when a run ends well, and then as a whole. A run that
//     may store no links writes to a directory of its own beside it (outdir.FailedOf), and
//     a dry run too (outdir.DryOf).
//   - A run that died hinders no other. What it left beside the output is discarded by the next
//     claim. What it left in the store counts as existing, and only its own command resumes it.
//   - read = created + existing + duplicate + rejected, and the numbers as settled are the
//     numbers as written, or the run fails.
//
// # Memory
//
// Config.Memory bounds what a run holds; budget.go says how it is divided. The garbage of
// the process comes on top unless the caller has it collected in time: bulk calls
// debug.SetMemoryLimit with Memory less 56 MiB for what lies outside of the heap.
//
// In the sort a row takes about r + 60 bytes: r for canonical URL, original URL (where it
// differs) and carried cells, 16 for its entry, the rest for its head and padding. Rows past
// the bound lie in a spill file without a name in Config.TempDir. The file needs as much
// room, and 32 bytes a row for the heads that settling reads; twice that for rejects, and
// for a list of few URLs with very many rows each; and as much again for a mapping in the
// order of the input. URLs that contest a code stay in memory: 300 bytes each, their
// canonical form, and 100 bytes for each code that they ask for. If that is too much the run
// ends before it has stored anything.
//
// Outside of the bound are
//
//   - the inputs, at some 6 KB each;
//   - the names of workspaces, at some 100 bytes each and for each worker;
//   - of a campaign up to 15,000 values of each parameter that rows make, at some 100 bytes each and for each worker;
//   - URLs that the store has under another code than that of salt 0, and owners of the
//     lower codes of a link, at some 100 bytes more each;
//   - a byte for each row that the store had, for each row of a run that keeps codes, and for
//     each row with link rules in a bucket of which there is something to say;
//   - of the buckets that are written, what links have whose rows say something else, at some 40
//     bytes a row;
//   - of a run that keeps codes and has link rules, the rows of the URL with the most rows;
//   - of a run that keeps codes, what became of those of one URL and of the URLs that share its
//     code of salt 0, at some 100 bytes for each code that the store had or that is lost;
//   - the window of each zstd input that is being read, which may be 128 MiB if it was made
//     with --long;
//   - a record batch of an Arrow input, of at most 4 GiB;
//   - for every four workers, a page and the dictionary of each column of a row group of a
//     Parquet input, decoded and as text; where this is more than 4 GiB plus 16 times the
//     size of the file it is an error;
//   - several copies of the largest row (a row is at most 1 GiB; a reject 3 GiB).
package pipeline
