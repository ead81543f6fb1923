package record

import (
	"bytes"
	"math"
	"testing"

	"github.com/linkforge/bulk/codegen"
	"github.com/linkforge/bulk/pipeline/manifest"
	"github.com/linkforge/bulk/pipeline/packed"
	"github.com/linkforge/bulk/pipeline/rules"
)

// FuzzRecord encodes a row as the sort holds it and gets it back.
func FuzzRecord(f *testing.F) {
	f.Add([]byte("http://a/"), []byte("http://a/"), []byte("x"), []byte(nil), uint64(1), uint32(0), int64(1), int64(-1))
	f.Add([]byte("http://a/"), []byte(" HTTP://a"), bytes.Repeat([]byte("y"), 300), []byte(""), uint64(1)<<63, uint32(300), int64(1)<<40, int64(1)<<50)
	f.Add([]byte(""), []byte("x"), []byte(nil), []byte(nil), uint64(0), uint32(manifest.MaxInputs-1), int64(1)<<rowBits-1, int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, canonical, original, a, b []byte, hash uint64, source uint32, row, offset int64) {
		if len(canonical) > 1<<16-1 || source >= manifest.MaxInputs || row < 0 || row >= 1<<rowBits || offset < -1 {
			return
		}
		if len(b) == 0 && row%2 == 0 {
			b = nil
		}
		old := Legacy{Code: b, Link: row%2 == 1}
		if i := bytes.IndexByte(b, 0); i >= 0 { // no code that is accepted has such a byte
			old.Code = b[:i:i]
		}
		written := old.Code
		if old.Code != nil && row%4 > 1 {
			written = append(bytes.Clone(old.Code), a...)
			old.Written = written
		}
		h, at, flags := codegen.Hash{Hi: hash, Lo: ^hash}, Place{int(source), row, offset, int(row%3) << 10}, NoWorkspace
		if at.Variant != 0 {
			flags |= Variant
		}
		var with *Rules
		if row%5 < 2 {
			with = &Rules{Parts: bytes.ReplaceAll(a, []byte("|"), nil), Params: rules.Params{Limit: row, Expiry: rules.Expiry{When: rules.Reckoned, Seconds: int64(source)}}}
		}
		first := First{Hash: h}
		if row%3 > 0 {
			first = First{codegen.Hash{Hi: ^hash, Lo: hash}, int(row%3) - 2}
		}
		rec := FinishWith(append(Start(nil), canonical...), h, original, flags, first, &old, with)
		rec = AppendPlace(packed.AppendNullable(packed.AppendNullable(rec, a), b), at)
		got := Decode(rec)
		cells, legacy := got.Carried(nil, 2), got.Legacy()
		if codegen.FromKey(Key(rec)) != h || !bytes.Equal(got.Canonical, canonical) || !bytes.Equal(got.Original, original) || got.flags&NoWorkspace == 0 ||
			!bytes.Equal(legacy.Code, old.Code) || (legacy.Code == nil) != (b == nil) || !bytes.Equal(legacy.Written, written) || legacy.Link != old.Link ||
			!bytes.Equal(cells[0], a) || !bytes.Equal(cells[1], b) || (cells[1] == nil) != (b == nil) || got.Place != at {
			t.Errorf("%+v, cells %q", got, cells)
		}
		if firstOf(rec) != first {
			t.Errorf("first code %+v, want %+v", firstOf(rec), first)
		}
		if with != nil && (!HasParams(rec, with.Params.Append(nil)) || HasParams(rec, (&rules.Params{Limit: row + 1}).Append(nil))) {
			t.Errorf("%+v are not those of the record", with.Params)
		}
		if with == nil && (HasParams(rec, nil) || HasParams(rec, (&rules.Params{}).Append(nil))) {
			t.Error("a record without parameters has some")
		}
		var again Rules
		got.Rules(&again)
		if ok := got.flags&flagRules != 0; ok != (with != nil) || ok && (!bytes.Equal(again.Parts, with.Parts) || rules.Compare(&again.Params, &with.Params) != 0) {
			t.Errorf("%+v, want %+v", again, with)
		}
		if (Order{Carried: 2}).Compare(rec, rec) != 0 {
			t.Error("differs from itself")
		}
	})
}
