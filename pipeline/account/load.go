package account

import "strings"

// A Load is a Run whose links were stored from its mapping in parts. It comes from OfDirectory.
type Load struct{ *Run }

// Account returns the facts of the load.
func (l *Load) Account() *Account {
	a := &Account{Title: "load finished"}
	run := Fact{Key: "run", Value: ID(l.ID), Words: "run {} loaded {out} in {seconds}"}
	switch {
	case l.Repeated:
		a.Title = "nothing to do: the load is finished"
		run.Words = "nothing to do: run {} has loaded {out}"
	case l.Resumed:
		run.Words = "run {}, resumed, loaded {out} in {seconds}"
	}
	if l.Took == 0 { // not known
		run.Words = strings.TrimSuffix(run.Words, " in {seconds}")
	}
	a.add(run, Fact{Key: "out", Value: l.Out}, Fact{Key: "resumed", Value: l.Resumed}, Fact{Key: "repeated", Value: l.Repeated}, Fact{Key: "seconds", Log: "-", Value: l.Took})
	a.add(l.counts()...)
	a.add(l.links()...)
	a.add(l.end()...)
	return a
}
