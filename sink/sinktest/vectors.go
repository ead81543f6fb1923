package sinktest

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/linkforge/bulk/sink"
)

// vectors are the sequences of operations in which the law of link rules is written down.
const vectors = "../../testdata/rules.jsonl"

// A vector is a sequence of operations.
type vector struct {
	Name, Workspace string
	Ops             []struct {
		Op           string
		AsOf         time.Time `json:"as_of"`
		Grace        int64     // seconds
		Owner        string
		Items, Codes []string
		Expect       json.RawMessage
	}
}

// vectorState is what an operation is expected to leave and to answer.
type vectorState struct {
	Marked, Deleted []string
	Rows            []struct {
		Outcome, Reason, Change string
		Codes                   []string
	}
	Store []struct {
		Code        string    `json:"short_code"`
		Key         string    `json:"url_key"`
		Input       string    `json:"hash_input"`
		Original    string    `json:"original_url"`
		Expires     time.Time `json:"expires_at"`
		MaxUses     int64     `json:"max_uses"`
		Uses        int64     `json:"access_count"`
		Type        string    `json:"link_type"`
		Owner       string    `json:"owner_id"`
		Ref, Status string
		Since       time.Time
	}
}

// rows are the links of a state.
func (v vectorState) rows(t *testing.T, workspace string) (out []Row) {
	for _, l := range v.Store {
		canonical, _, _ := strings.Cut(l.Input, "|")
		row := rows([]sink.Link{coded(workspace, canonical, l.Code)}, 0)[0]
		row.Created = asOf
		key, err := hex.DecodeString(l.Key)
		noError(t, err)
		if row.Key != sink.Key(key) {
			row.Base, row.Key = row.Key, sink.Key(key)
		}
		if l.Original != canonical {
			row.Original.String, row.Original.Valid = l.Original, true
		}
		row.Rules = Rules{Expires: l.Expires, MaxUses: l.MaxUses, Uses: l.Uses, Type: l.Type, Owner: l.Owner, Ref: l.Ref, Status: l.Status, Marked: l.Since}
		out = append(out, row)
	}
	return out
}

// Each delete, sweep and resolve of the vectors begins with the links that the operation before it
// has left.
func testVectors(t *testing.T, db *database) {
	f, err := os.Open(vectors)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip(err)
	}
	noError(t, err)
	defer f.Close()
	db.with(func(sink.Session) {})
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var v vector
		noError(t, json.Unmarshal(lines.Bytes(), &v))
		var now []Row
		for i, op := range v.Ops {
			var want vectorState
			if op.Op != "resolve" {
				noError(t, json.Unmarshal(op.Expect, &want))
			}
			if op.Op == "run" || op.Op == "service" {
				now = want.rows(t, v.Workspace)
				continue
			}
			db.Execute(t, "DELETE FROM links WHERE true")
			db.Insert(t, now...)
			t.Logf("%s, operation %d: %s", v.Name, i, op.Op)
			switch op.Op {
			case "sweep":
				db.vectorSweep(sink.SweepOptions{AsOf: op.AsOf, Grace: time.Duration(op.Grace) * time.Second}, want)
			case "delete":
				db.vectorDelete(sink.DeleteOptions{Workspace: v.Workspace, Owner: op.Owner, AsOf: op.AsOf}, op.Items, want)
			case "resolve":
				db.vectorResolve(v.Workspace, op.Codes, op.AsOf, op.Expect)
				continue
			}
			now = want.rows(t, v.Workspace)
			db.expect(now)
		}
	}
	noError(t, lines.Err())
}

func (db *database) vectorSweep(opts sink.SweepOptions, want vectorState) {
	var marked, deleted []string
	store := db.Open(db.t)
	defer closed(db.t, store)
	_, err := store.Sweep(context.Background(), opts, func(s sink.Swept) error {
		if s.Deleted {
			deleted = append(deleted, s.Code)
		} else {
			marked = append(marked, s.Code)
		}
		return nil
	})
	noError(db.t, err)
	equal(db.t, marked, want.Marked...)
	equal(db.t, deleted, want.Deleted...)
}

// vectorDelete finds out what becomes of the rows as the command does: from URLs to codes.
func (db *database) vectorDelete(opts sink.DeleteOptions, texts []string, want vectorState) {
	var order []int
	for _, urls := range []bool{true, false} {
		for i, text := range texts {
			if strings.Contains(text, "://") == urls {
				order = append(order, i)
			}
		}
	}
	var items []sink.Deletion
	for _, i := range order {
		item := ofCode(texts[i])
		if canonical, _, _ := strings.Cut(texts[i], "#"); strings.Contains(texts[i], "://") {
			item = ofURL(opts.Workspace, canonical)
		}
		items = append(items, item)
	}
	of := make([][]sink.Named, len(texts))
	store := db.Open(db.t)
	defer closed(db.t, store)
	noError(db.t, store.Delete(context.Background(), opts, pieces(items, 3, nil), func(n sink.Named) error {
		of[order[n.Item]] = append(of[order[n.Item]], n)
		return nil
	}))
	named := map[string]bool{}
	for _, i := range order {
		w := want.Rows[i]
		got := "not_found"
		var codes []string
		fresh, owned := false, false
		for _, n := range of[i] {
			owned, fresh = owned || !n.Others, fresh || !n.Others && !named[n.Code]
			named[n.Code] = named[n.Code] || !n.Others
			if n.Marked {
				codes = append(codes, n.Code)
			}
		}
		switch {
		case len(of[i]) > 0 && !owned:
			got = "other_owner"
		case owned && !fresh:
			got = "duplicate"
		case len(codes) > 0:
			got = "existing deleted"
		case owned:
			got = "existing"
		}
		if expected := strings.TrimSpace(strings.TrimPrefix(w.Outcome+" "+w.Change+w.Reason, "rejected ")); got != expected || !slices.Equal(codes, w.Codes) {
			db.t.Errorf("item %q: %s %q, want %s %q", texts[i], got, codes, expected, w.Codes)
		}
	}
}

func (db *database) vectorResolve(workspace string, codes []string, at time.Time, expect json.RawMessage) {
	type answer struct {
		Status   int
		Location string
	}
	var want []answer
	noError(db.t, json.Unmarshal(expect, &want))
	got := slices.Repeat([]answer{{Status: 404}}, len(codes))
	store := db.Open(db.t)
	defer closed(db.t, store)
	noError(db.t, store.Resolve(context.Background(), workspace, codes, func(r *sink.Resolved) error {
		a := answer{Status: r.Rules.Answer(at)}
		if a.Status == 302 {
			a.Location = string(r.URL)
		}
		got[r.Index] = a
		return nil
	}))
	equal(db.t, got, want...)
}
