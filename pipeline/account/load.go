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

// A Commit is a Run that was done in tasks, of which nothing is stored yet. It comes from OfDirectory.
type Commit struct{ *Run }

// Account returns the facts of the commit.
func (c *Commit) Account() *Account {
	a := &Account{Title: "run committed"}
	done := Fact{Key: "committed", Value: true, Words: "committed {out}; bulk load stores its links"}
	if c.Refused != "" {
		a.Title = "run refused"
		done = Fact{Key: "committed", Value: false, Words: "the run was refused; {out} has its rejects"}
	}
	a.add(done)
	a.add(c.counts()...)
	a.add(c.rejects()...)
	a.add(blankRows(c.BlankRows)...)
	a.add(c.urls()...)
	for _, f := range c.files() {
		if f.Key != "rows_per_second" { // which no single process knows
			a.add(f)
		}
	}
	a.add(c.last()...)
	return a
}
