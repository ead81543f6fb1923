// Package pipeline turns URL lists into stored short links and a report.
//
// [Run] is the entry point, and these are its stages:
//
//	source ──► batches ──► canon + codegen ──► extsort ──► settle ──► emit ──► store
//	└───────────── workers ──────────────┘     by (workspace, code₀,      └──► report
//	                                           canonical, original,
//	                                           carried, source, row)
//
// Intake reads all inputs; a worker takes a block of one, or some rows of a row
// group, all the way into the sort. Each row becomes a record of the sort (see record),
// or a reject in a sort of its own. Settle visits the sorted records once,
// looks the store up, and decides the code of every URL (see settlement); what
// contests a code goes to package assign. Emit visits them again, writes mapping
// and collisions and loads the links, all in the order of the sort; if the mapping
// is wanted in that of the input, its rows go through one more sort.
//
// # Invariants
//
//   - Of the records of one URL, the first in the order of the sort is the link;
//     the others are duplicates. The order is total and knows nothing of workers,
//     batches or the order of the input, so neither does any output.
//   - Nothing is stored before every row is settled. The session with the store,
//     and with it the locks on the workspaces, lasts from before the first lookup
//     until the output directory has its name and the store knows that. (That of a dry
//     run, which has no locks, is closed once all is settled.)
//   - Whatever an interrupted attempt left in the store bears the id of its run.
//     An attempt that goes on with it counts those links as created. So a conflict
//     with another writer, a store that fails for a while and a process that was
//     killed are all handled alike: settle again, load what is missing, write the
//     reports anew.
//   - A directory of output belongs to its run from before the inputs are read until
//     it has its name (outdir.Dir.Own): a run of something else is refused.
//   - read = created + existing + duplicate + rejected, and the numbers as settled
//     are the numbers as written, or the run fails.
//
// # Memory
//
// Config.Memory bounds what a run holds; budget says how it is divided. The garbage
// of the process comes on top unless the caller has it collected in time: bulk calls
// debug.SetMemoryLimit with Memory less 56 MiB for what lies outside of the heap.
//
// In the sort a row takes about r + 60 bytes: r of canonical URL, original URL (where
// it differs) and carried cells, 16 of its entry, the rest of its head and padding.
// Rows past the bound lie in a spill file without a name in Config.TempDir. It needs as
// much room, and 32 bytes a row for the heads that settling reads; twice that for rejects,
// and for a list of few URLs with very many rows each; and as much again for a mapping in
// the order of the input. URLs that contest a code stay in memory: 300 bytes each, their
// canonical form, and 100 bytes for each code that they ask for. If that is too much the
// run ends before it has stored anything.
//
// Outside of the bound are
//
//   - the inputs, at some 6 KB each;
//   - the names of workspaces, at some 100 bytes each and for each worker;
//   - the URLs that the store has under another code than that of salt 0, and those
//     that have the lower codes of a link, at some 100 bytes more each;
//   - a byte for each row that the store had;
//   - the window of each zstd input that is being read, which may be 128 MiB if it was
//     made with --long;
//   - a record batch of an Arrow input, of at most 4 GiB;
//   - for every four workers a page and the dictionary of each column of a row group of a
//     Parquet input, decoded and as text; where this is more than 4 GiB plus 16 times the
//     size of the file it is an error;
//   - what a single row has, at most 1 GiB, or 3 of rejects, a few times.
package pipeline
