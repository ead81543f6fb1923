package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/linkforge/bulk/pipeline/account"
	"github.com/linkforge/bulk/pipeline/hygiene"
)

// Sentences are how a terminal tells an account, unless it has a screen for it.

// report tells an account: to people in sentences, to machines as log lines.
func (u *ui) report(a *account.Account) {
	if u.lines {
		u.logAccount(a)
	} else {
		u.print("bulk: " + strings.ReplaceAll(strings.Join(sentences(a), "\n"), "\n", "\nbulk: "))
	}
}

// sentences returns an account as sentences.
func sentences(a *account.Account) (list []string) {
	mentioned := a.Mentioned()
	for i := range a.Facts {
		if f := &a.Facts[i]; f.Told() && !mentioned[f.Key] {
			list = append(list, sentence(a, f))
		}
	}
	return list
}

// sentence returns a fact as a sentence.
func sentence(a *account.Account, f *account.Fact) string {
	text := claim(a, f)
	if len(f.By) > 0 && f.Value != nil {
		text += " (" + partsText(f.By) + ")"
	}
	if e := f.Example; e != nil {
		text += ", for example " + oneLine(e.Text)
		if e.Row > 0 {
			text += " (" + oneLine(e.Source) + ", row " + thousands(e.Row) + ")"
		}
	}
	if f.Note != "" {
		text += "; " + oneLine(f.Note)
	}
	return text
}

// claim returns a fact as it is called, and its value.
func claim(a *account.Account, f *account.Fact) string {
	if f.Words != "" {
		return expand(a, f, f.Words)
	}
	if n, ok := f.Value.(int64); ok { // its name has the noun
		return f.Name + ": " + thousands(n)
	}
	return f.Name + ": " + oneLine(valueText(f))
}

// expand fills in the places of words: {} with the value of the fact, {key} with that of another.
func expand(a *account.Account, f *account.Fact, words string) string {
	return account.Fill(words, func(key string) string {
		of := f
		if key != "" {
			of = a.Get(key)
		}
		return oneLine(valueText(of))
	})
}

// valueText writes a value for people.
func valueText(f *account.Fact) string {
	switch v := f.Value.(type) {
	case int64:
		if f.Noun != "" {
			return count(v, f.Noun)
		}
		return thousands(v)
	case account.ID:
		return strconv.FormatInt(int64(v), 10)
	case string:
		return v
	case []string:
		return short(v)
	case account.List:
		return strings.Join(v, ", ")
	case account.Names:
		return brief(v)
	case time.Time:
		return v.Format("2006-01-02 15:04")
	case time.Duration:
		return took(v)
	case bool:
		return map[bool]string{false: "no", true: "yes"}[v]
	}
	return partsText(f.By)
}

// partsText lists counts by name.
func partsText(parts []account.Part) string {
	var list []string
	for _, p := range parts {
		list = append(list, oneLine(p.Name)+" "+thousands(p.Count))
	}
	return strings.Join(list, ", ")
}

// oneLine makes a text one line.
func oneLine(text string) string { return hygiene.VisibleLine(text) }
