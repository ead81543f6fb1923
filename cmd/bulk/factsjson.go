package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/linkforge/bulk/pipeline/account"
)

// printFacts writes an account as a JSON object on a line.
func printFacts(w io.Writer, a *account.Account) error { return newJSON(w).Encode(factsObject(a)) }

// factsObject returns an account as a JSON object.
func factsObject(a *account.Account) *object {
	all := newObject()
	for i := range a.Facts {
		f := &a.Facts[i]
		if f.In != "-" {
			_, members := f.Full.(account.Empty)
			if at := all.at(f.In); members {
				at.at(f.Key)
			} else if f.Words == "" || f.Value != nil || f.Full != nil || f.By != nil {
				at.set(f.Key, factJSON(f))
			}
		}
	}
	for i := range a.Facts {
		f := &a.Facts[i]
		if e := f.Example; e != nil && e.In != "" {
			key := f.Key
			if e.Key != "" {
				key = e.Key
			}
			all.at(e.In).set(key, exampleJSON(e))
		}
	}
	return all
}

// factJSON returns the value of a fact in JSON.
func factJSON(f *account.Fact) any {
	switch {
	case f.Full != nil:
		return f.Full
	case f.Value == nil:
		return partsJSON(f.By)
	case f.By == nil && (f.Example == nil || f.Example.In != ""):
		return valueJSON(f.Value)
	}
	o := newObject()
	noun := "count"
	if f.Noun != "" {
		noun = f.Noun + "s"
	}
	o.set(noun, valueJSON(f.Value))
	if f.By != nil {
		o.set("by", partsJSON(f.By))
	}
	if f.Example != nil && f.Example.In == "" {
		o.set("example", exampleJSON(f.Example))
	}
	return o
}

func partsJSON(parts []account.Part) *object {
	o := newObject()
	for _, p := range parts {
		o.set(p.Name, p.Count)
	}
	return o
}

func valueJSON(value any) any {
	switch v := value.(type) {
	case time.Time:
		return stamp(v)
	case time.Duration:
		return v.Round(time.Microsecond).Seconds()
	}
	return value
}

func exampleJSON(e *account.Example) any {
	if e.Full != nil {
		return e.Full
	}
	o := newObject()
	if e.Row > 0 {
		o.set("source", e.Source)
		o.set("row", e.Row)
	}
	o.set("text", e.Text)
	return o
}

// An object is a JSON object whose members keep the order in which they were set.
type object struct {
	names   []string
	members map[string]any
}

func newObject() *object { return &object{members: map[string]any{}} }

func (o *object) set(name string, value any) {
	if _, there := o.members[name]; !there {
		o.names = append(o.names, name)
	}
	o.members[name] = value
}

// at returns the object at a path of names and dots, which it makes if it is not there; "": o.
func (o *object) at(path string) *object {
	if path == "" {
		return o
	}
	name, rest, _ := strings.Cut(path, ".")
	in, ok := o.members[name].(*object)
	if !ok {
		in = newObject()
		o.set(name, in)
	}
	return in.at(rest)
}

// MarshalJSON implements json.Marshaler.
func (o *object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, name := range o.names {
		if i > 0 {
			b.WriteByte(',')
		}
		for j, v := range []any{name, o.members[name]} {
			if j > 0 {
				b.WriteByte(':')
			}
			if err := newJSON(&b).Encode(v); err != nil {
				return nil, err
			}
			b.Truncate(b.Len() - 1) // the end of the line
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

var _ json.Marshaler = (*object)(nil)
