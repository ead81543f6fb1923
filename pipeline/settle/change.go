package settle

import (
	"encoding/binary"
	"time"

	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/sink"
)

// fileChange puts the change of a link into the sort of changes: the verdict says what it is to
// become, and the row speaks for it. The group is that of the workspace, the key the first
// bytes of the code, and the content
//
//	code as of extsort.AppendCell | rules as they were, and as they are to be, as of appendRules
//	| change 1 | original as of extsort.AppendNullable, only of a revival
func (j *judging) fileChange(group uint32, found *sink.Found, verdict *rules.Verdict, speaker *record.Record) {
	was, now := *found.Rules, rulesOf(&verdict.Link)
	rec := appendRules(extsort.AppendCell(j.buf[:0], found.Code), &was)
	if verdict.Result.Action() == rules.Revive {
		now.Status = sink.Active
		rec = append(appendRules(rec, &now), byte(verdict.Result.Change))
		rec = extsort.AppendNullable(rec, j.s.cfg.Rules.Original(speaker))
	} else {
		now.Status = was.Status
		rec = append(appendRules(rec, &now), byte(verdict.Result.Change))
	}
	copy(j.changes.Reserve(group, extsort.TextKey(found.Code), len(rec)), rec)
	j.buf = rec
}

func decodeChange(rec []byte) (c sink.Change) {
	c.Code, rec = extsort.CutCell(rec)
	c.Was, rec = cutRules(rec)
	c.Now, rec = cutRules(rec)
	change := rules.Change(rec[0])
	c.Now.Change = change.String()
	if c.Revive = change == rules.Revived; c.Revive {
		c.Original, _ = extsort.CutNullable(rec[1:])
	}
	return c
}

// appendRules appends what a Change compares and gives:
//
//	1 if there is an expiry, else 0; microseconds of Unix time, 8 bytes; limit 8; uses 8
//	| type, owner as of extsort.AppendNullable | status as of extsort.AppendCell
func appendRules(dst []byte, r *sink.Rules) []byte {
	expires, has := int64(0), byte(0)
	if !r.Expires.IsZero() {
		expires, has = r.Expires.UnixMicro(), 1
	}
	dst = append(dst, has)
	for _, n := range []int64{expires, r.MaxUses, r.Uses} {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(n))
	}
	return extsort.AppendCell(extsort.AppendNullable(extsort.AppendNullable(dst, r.Type), r.Owner), r.Status)
}

func cutRules(rec []byte) (r sink.Rules, rest []byte) {
	number := func(i int) int64 { return int64(binary.LittleEndian.Uint64(rec[1+8*i:])) }
	if rec[0] == 1 {
		r.Expires = time.UnixMicro(number(0)).UTC()
	}
	r.MaxUses, r.Uses = number(1), number(2)
	r.Type, rest = extsort.CutNullable(rec[1+3*8:])
	r.Owner, rest = extsort.CutNullable(rest)
	status, rest := extsort.CutCell(rest)
	r.Status = sink.Word(status)
	return r, rest
}
