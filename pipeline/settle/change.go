package settle

import (
	"encoding/binary"
	"time"

	"github.com/linkforge/bulk/pipeline/packed"
	"github.com/linkforge/bulk/pipeline/record"
	"github.com/linkforge/bulk/pipeline/rules"
	"github.com/linkforge/bulk/sink"
)

// fileChange puts the change of a link into the sort of changes: the verdict says what it is to
// become, and the row speaks for it. The group is that of the workspace, the key the first
// bytes of the code, and the content
//
//	code as of packed.AppendCell | rules as they were, and as they are to be, as of appendRules
//	| change 1 | original as of packed.AppendNullable, only of a revival
func (j *judging) fileChange(group uint32, found *sink.Found, verdict *rules.Verdict, speaker *record.Record) {
	was, now := *found.Rules, rulesOf(&verdict.Link)
	rec := appendRules(packed.AppendCell(j.buf[:0], found.Code), &was)
	if verdict.Result.Action() == rules.Revive {
		now.Status = sink.Active
		rec = append(appendRules(rec, &now), byte(verdict.Result.Change))
		rec = packed.AppendNullable(rec, j.s.cfg.Rules.Original(speaker))
	} else {
		now.Status = was.Status
		rec = append(appendRules(rec, &now), byte(verdict.Result.Change))
	}
	copy(j.changes.Reserve(group, packed.TextKey(found.Code), len(rec)), rec)
	j.buf = rec
}

func decodeChange(rec []byte) (c sink.Change) {
	c.Code, rec = packed.CutCell(rec)
	c.Was, rec = cutRules(rec)
	c.Now, rec = cutRules(rec)
	change := rules.Change(rec[0])
	c.Now.Change = change.String()
	if c.Revive = change == rules.Revived; c.Revive {
		c.Original, _ = packed.CutNullable(rec[1:])
	}
	return c
}

// appendRules appends what a Change compares and gives:
//
//	1 if there is an expiry, else 0; microseconds of Unix time, 8 bytes; limit 8; uses 8
//	| type, owner as of packed.AppendNullable | status as of packed.AppendCell
func appendRules(dst []byte, r *sink.Rules) []byte {
	expires, has := int64(0), byte(0)
	if !r.Expires.IsZero() {
		expires, has = r.Expires.UnixMicro(), 1
	}
	dst = append(dst, has)
	for _, n := range []int64{expires, r.MaxUses, r.Uses} {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(n))
	}
	return packed.AppendCell(packed.AppendNullable(packed.AppendNullable(dst, r.Type), r.Owner), r.Status)
}

func cutRules(rec []byte) (r sink.Rules, rest []byte) {
	number := func(i int) int64 { return int64(binary.LittleEndian.Uint64(rec[1+8*i:])) }
	if rec[0] == 1 {
		r.Expires = time.UnixMicro(number(0)).UTC()
	}
	r.MaxUses, r.Uses = number(1), number(2)
	r.Type, rest = packed.CutNullable(rec[1+3*8:])
	r.Owner, rest = packed.CutNullable(rest)
	status, rest := packed.CutCell(rest)
	r.Status = sink.Word(status)
	return r, rest
}
