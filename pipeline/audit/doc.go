// Package audit proves, compares and explains what runs have left behind.
//
// [Verify] recomputes everything that the files of a run say, from the files
// themselves and, if it is given them, from the inputs and the store. What each
// [Kind] of finding means stands beside it.
package audit
