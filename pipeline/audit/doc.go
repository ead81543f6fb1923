// Package audit proves, compares and explains what runs have left behind.
//
//   - [Verify] recomputes everything that the files of a run say, from the files
//     themselves and, if it is given them, from the inputs and the store. What
//     each [Kind] of finding means stands beside it.
//   - [Diff] compares two runs, or two mappings.
//   - [Rules.Explain] shows the way from a URL to its code, and [Rules.Ask] who has
//     the codes of the URL in a store, and so what a run would do.
//   - [Expect] estimates how many links of a run will meet a code that is taken.
package audit
