// Package harness measures child processes side by side: in one run, in turns and several
// times each, so that other work on the machine affects all of them alike.
//
// [Bench.Section] measures groups of steps. Each round runs every group once; every second
// round has them in reverse order. The steps of a group follow one another, since a later
// step may need what an earlier one left. A [Result] is written as a page in Markdown and
// as JSON with all samples. [Main] is the common part of the programs.
//
// A sample has the wall clock, the processor time (user and system), the peak of the
// resident memory as getrusage reports it, and the bytes that were written. A child starts
// with the memory of its parent, so its peak is at least that of the harness. That is why
// the harness holds no data and runs children also for the preparation.
package harness
