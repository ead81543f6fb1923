package account

import "strings"

// A Verify is what a check of a run found.
type Verify struct {
	Rows, Rejects  int64
	Inputs         int64 // that rows were compared with
	Store          bool  // the store was given
	Digest         bool  // the digest of the manifest was given
	Kinds          map[string]int64
	Problems       int64
	Unlisted       int64 // of Problems
	Doubts         int64 // lines that are no problems
	MoreDoubts     int64 // of these, not listed
	DoubtKinds     []string
	NotCompared    []string // parts by their names
	Gaps           []Gap    // the same for people
	ManifestSHA256 string
	DryRun         bool
	NoMapping      bool
	Undone         bool
	Since          Since
}

// Since counts links that are in the store no more as the run left them, which is no problem.
type Since struct{ Gone, Changed, Marked, Lives int64 }

// A Gap is something that was not compared.
type Gap struct {
	What string // what it is
	Why  string // and why not, or which flag compares it
}

// Account returns the facts of the check.
func (v *Verify) Account() *Account {
	a := &Account{Title: "the run agrees with what it was compared with"}
	verdict := Fact{Key: "verdict", Value: "OK", Words: "{}: {mapped} agree with {compared}"}
	if v.Rejects > 0 {
		verdict.Words = "{}: {mapped} and {rejected} agree with {compared}"
	}
	if v.Problems > 0 {
		a.Title, a.Level = "the run has problems", Problem
		verdict = Fact{Key: "verdict", Value: "FAILED", Words: "{}: {findings} ({kinds})"}
	}
	a.add(verdict,
		Fact{Key: "not_compared", Value: List(some(v.NotCompared)), Words: "not compared: " + v.gaps()},
		Fact{In: "counts", Key: "read", Value: v.Rows + v.Rejects},
		Fact{In: "-", Key: "mapped", Log: "-", Noun: "row", Value: v.Rows},
		Fact{In: "counts", Key: "rejected", Noun: "reject", Value: v.Rejects},
		Fact{In: "-", Key: "inputs", Noun: "input", Value: v.Inputs},
		Fact{In: "-", Key: "compared", Log: "-", Value: v.compared()},
		Fact{Key: "manifest_sha256", Log: "-", Value: v.ManifestSHA256},
		Fact{Key: "findings", Log: "problems", Noun: "problem", Value: v.Problems},
		Fact{Key: "unlisted", Log: "-", Value: v.Unlisted},
		unless(len(v.Kinds) == 0, Fact{Key: "kinds", By: parts(v.Kinds)}),
		unless(v.MoreDoubts == 0, Fact{Key: "more_unexplained", Log: "-", Noun: "line", Value: v.MoreDoubts}),
		Fact{In: "-", Key: "no_problems", Noun: "line", Value: v.Doubts, Words: "no problems, but worth a look: {} (" + strings.Join(v.DoubtKinds, ", ") + ")"},
		unless(!v.DryRun, Fact{Key: "dry_run", Log: "-", Value: v.DryRun}), unless(!v.NoMapping, Fact{Key: "no_mapping", Log: "-", Value: v.NoMapping}),
		unless(!v.Undone, Fact{Key: "undone", Value: v.Undone, Words: "the run was undone"}))
	a.add(v.since()...)
	return a
}

// unless returns a fact that JSON does not have if there is nothing of it.
func unless(none bool, f Fact) Fact {
	if none {
		f.In = "-"
	}
	return f
}

// gaps lists for people what was not compared.
func (v *Verify) gaps() string {
	var list []string
	for _, g := range v.Gaps {
		list = append(list, literal(g.What)+" ("+literal(g.Why)+")")
	}
	return strings.Join(list, ", ")
}

// compared lists for people what the rows were compared with.
func (v *Verify) compared() string {
	list := []string{"the files"}
	if v.Inputs > 0 {
		list = append(list, Counted(v.Inputs, "input"))
	}
	if v.Store {
		list = append(list, "the store")
	}
	if v.Digest {
		list = append(list, "the manifest's SHA-256")
	}
	return Enumerate(list)
}

// since tells what became of the links of the run.
func (v *Verify) since() []Fact {
	var list []Fact
	var said []string
	for _, c := range []struct {
		key, what string
		links     int64
	}{
		{"gone", "gone (perhaps swept)", v.Since.Gone}, {"changed", "changed by later runs", v.Since.Changed},
		{"marked", "marked as expired or deleted", v.Since.Marked}, {"lives", "working again, whose rows were rejected", v.Since.Lives},
	} {
		list = append(list, Fact{In: "since", Key: c.key, Noun: "link", Value: c.links})
		if c.links > 0 {
			said = append(said, "{"+c.key+"} "+c.what)
		}
	}
	if said == nil {
		return nil
	}
	return append([]Fact{{In: "-", Key: "since_words", Log: "-", Words: "no problem: since the run, " + strings.Join(said, ", ")}}, list...)
}

// A NotCompared is what there is to know to say what a check did not compare.
type NotCompared struct {
	Inputs, Store bool     // they were given
	Attrs         []string // columns of the inputs that went along with links
}

// Believed says what is believed because a part cannot be compared.
var Believed = map[string]string{
	"secret":    "without the secret it is believed that each code is the one that the scheme gives",
	"blocklist": "without the blocklist it is believed that it has the words for which codes were skipped and that no code of the run contains one",
}

// Gap says what a part is that was not compared, and why, or which flag compares it. Parts have the
// names that package verify gives them.
func (n *NotCompared) Gap(part string) Gap {
	switch part {
	case "files":
		return Gap{"all but the manifest", "no run wrote one like this"}
	case "links":
		return Gap{"the links", "the run stored nothing and has no mapping"}
	case "reject_details":
		return Gap{"the details of rejects", "another version of bulk wrote them"}
	case "inputs":
		if n.Inputs {
			return Gap{"all rows of the inputs", "see the problems"}
		}
		return Gap{"the inputs", "give them with --inputs"}
	case "parameters":
		return Gap{"what rows said of their links", "--inputs: the mapping has what links have"}
	case "beyond_limit":
		return Gap{"records of the inputs after the first", "--limit kept the run from reading them"}
	case "secret":
		return Gap{"the codes with what they were made from", "--scheme-key-file: " + Believed[part]}
	case "blocklist":
		return Gap{"the codes that were skipped", "--blocklist: " + Believed[part]}
	case "attrs":
		return n.attrs()
	case "short_url":
		return Gap{"short URLs", "they have domains of rows, and the run had --no-carry"}
	case "store":
		if n.Store {
			return Gap{"the store", "see the problems"}
		}
		return Gap{"the store", "--db"}
	case "links_in_store":
		return Gap{"the links in the store", "this was a dry run"}
	case "manifest_sha256":
		return Gap{"the manifest's SHA-256", "--manifest-sha256"}
	}
	return Gap{What: part}
}

// attrs says which columns of the inputs went along with links and are not in the mapping.
func (n *NotCompared) attrs() Gap {
	what := "titles, tags, clicks and creation times of the links in the store"
	switch len(n.Attrs) {
	case 0:
	case 1:
		what = "what the store has of the column " + n.Attrs[0]
	default:
		what = "what the store has of the columns " + Enumerate(n.Attrs)
	}
	return Gap{what, "the run had --no-carry, so the mapping does not have your columns"}
}
