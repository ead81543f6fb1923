// Package account says what a command found and did, as facts: what became of the rows of a run, what
// a preview expects, what verify and diff saw, which links a delete, a sweep or an undo deleted. It is
// pure, and knows no medium: how a fact looks as a sentence, as keys of a log, as a line of a screen
// or as JSON, the renderers in cmd/bulk decide, one for each medium. So a new fact is added here, and
// nowhere else.
//
// What the files of a finished run tell of it, [OfDirectory] takes from there.
package account

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/linkforge/bulk/pipeline/hygiene"
)

// An Account is how a command ended, and its facts in the order in which people are told.
type Account struct {
	Title string // how it ended, such as: run finished
	Level Level
	Facts []Fact
}

// A Level says how urgent an account is.
type Level int

// The levels.
const (
	Done    Level = iota
	Warning       // something was left to do
	Problem       // what was checked is not as it should be
)

// An ID is a number that counts nothing.
type ID int64

// Names are names of which people are told the first, and how many more there are.
type Names []string

// A List is told to people in full; of other lists they are told the first few.
type List []string

// A Fact is one thing that a command found or did.
type Fact struct {
	Key string // in JSON and in a log; unique among the facts of an account that have a value
	In  string // the object of JSON that it is a member of; objects in objects are joined by dots; "": none; "-": no JSON has it, since another fact has it in Full
	Log string // its key in a log, if that is another; "-": no log has it

	Name  string // what it is called, for people; "": people are not told, unless another fact's Words name it
	Words string // a statement of the fact in which {} stands for its value, and {key} for that of another fact; "": Name and value
	Noun  string // what a count counts, in the singular

	Value any    // int64 (a count), ID, string, bool, []string, List, Names, time.Time or time.Duration; nil: By is all
	By    []Part // a count by names, or counts that have nothing in common but the fact
	Full  any    // the value in JSON, if it is more than all this

	Example *Example
	Note    string // what else is to be known, or done
	Depth   int    // the fact is a part of the last one before of a lower depth
	Zero    bool   // people are told also if nothing is counted
	Exact   bool   // the text is for copying: it must not be cut
	Begins  bool   // a group of facts begins
	Look    bool   // somebody should look at it: rows or links are not what they were meant to be
}

// A Part is a count under a name.
type Part struct {
	Name  string
	Count int64
}

// An Example is a row that shows what a fact is about.
type Example struct {
	In, Key string // its place in JSON; "": within the fact
	Source  string // where the row is
	Row     int64  // 0: it is no row
	Text    string // what it shows, without secrets
	URL     string // of the row, without secrets
	Full    any    // the row in JSON; nil: Source, Row and Text
}

// Empty is the Full value of an object of JSON that other facts are members of, if there are any.
type Empty struct{}

// Told reports whether people are told the fact: it has a name, and something to say.
func (f *Fact) Told() bool {
	if f.Name == "" && f.Words == "" {
		return false
	}
	switch v := f.Value.(type) {
	case nil:
		return f.Words != "" || len(f.By) > 0
	case int64:
		return v != 0 || f.Zero
	case bool:
		return v
	case string:
		return v != ""
	case ID:
		return v != 0 || f.Zero
	case []string:
		return len(v) > 0
	case List:
		return len(v) > 0
	case Names:
		return len(v) > 0
	case time.Time:
		return !v.IsZero()
	}
	return true
}

// Get returns the fact of a key; nil: there is none.
func (a *Account) Get(key string) *Fact {
	if i := slices.IndexFunc(a.Facts, func(f Fact) bool { return f.Key == key }); i >= 0 {
		return &a.Facts[i]
	}
	return nil
}

// Mentioned returns the keys of the facts that the words of others tell.
func (a *Account) Mentioned() map[string]bool {
	keys := map[string]bool{}
	for i := range a.Facts {
		Fill(a.Facts[i].Words, func(key string) string {
			keys[key] = true
			return ""
		})
	}
	delete(keys, "")
	return keys
}

// Fill fills in the places of words with the values of their keys; of {} the key is "".
func Fill(words string, value func(key string) string) string {
	var b strings.Builder
	for {
		before, after, opened := strings.Cut(words, "{")
		b.WriteString(before)
		if !opened {
			return b.String()
		}
		key, rest, closed := strings.Cut(after, "}")
		if closed && strings.Trim(key, "abcdefghijklmnopqrstuvwxyz0123456789_") == "" {
			b.WriteString(value(key))
			words = rest
		} else {
			b.WriteByte('{')
			words = after
		}
	}
}

// Number writes a number for people: 3,520.
func Number(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return strings.Replace(s, "-,", "-", 1)
}

// Counted writes a number with its noun for people: 1 row, 3,520 rows.
func Counted(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return Number(n) + " " + noun
}

// Enumerate joins words for people: a, b and c.
func Enumerate(list []string) string {
	last := len(list) - 1
	if last == 0 {
		return list[0]
	}
	return strings.Join(list[:last], ", ") + " and " + list[last]
}

// literal is a text that may stand in Words: it has no place for a value.
func literal(text string) string { return strings.NewReplacer("{", "(", "}", ")").Replace(text) }

// add adds facts.
func (a *Account) add(facts ...Fact) { a.Facts = append(a.Facts, facts...) }

// parts lists counts, the highest first.
func parts(counts map[string]int64) (list []Part) {
	for _, name := range slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) }) {
		list = append(list, Part{name, counts[name]})
	}
	return list
}

// some makes an empty list of nil, which would be null in JSON.
func some[T any](list []T) []T { return append([]T{}, list...) }

// redacted is a text from the input without secrets.
func redacted[T ~string](text T) string { return hygiene.Redact(string(text)) }
