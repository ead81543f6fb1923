// Package harness measures child processes side by side: in one run, in turns,
// several times each, so that what else the machine does meets all of them
// alike.
//
// [Bench.Section] measures groups of steps. Each round does every group once, the
// rounds going forth and back through the list; the steps of a group follow one
// another, since a later one may need what an earlier one left. A [Result] leaves a
// page in Markdown and the samples as JSON. [Main] is what the programs have in common.
//
// Of each child it takes the wall clock, the processor time (user and system),
// the peak of the resident memory as getrusage tells it, and the bytes that it
// wrote. A child starts with the memory of its parent, so its peak is at least
// that of the harness: which therefore holds no data, but leaves preparation to
// children too.
package harness
