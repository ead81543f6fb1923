package stage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/linkforge/bulk/pipeline/emit"
	"github.com/linkforge/bulk/pipeline/extsort"
	"github.com/linkforge/bulk/pipeline/record"
)

// applied is what an attempt of Apply tells.
type applied struct {
	Part       part             `json:"part"`
	Collisions File             `json:"collisions"`
	Rejects    File             `json:"rejects"`
	Reasons    map[string]int64 `json:"reasons"` // rejects by reason
}

func (a applied) files() []File  { return []File{a.Part.File, a.Collisions, a.Rejects} }
func (a applied) digest() string { return a.Part.File.SHA256 + a.Collisions.SHA256 }

// Apply writes a shard that was amended, which is known by its number, as it was settled.
func (j *Job) Apply(ctx context.Context, n int) error {
	_, err := j.ApplyTo(ctx, n)
	return err
}

// ApplyTo does the same for an engine, and returns the name of the report.
func (j *Job) ApplyTo(ctx context.Context, n int) (reported string, err error) {
	if err := checkTask("apply", n, j.Shards()); err != nil {
		return "", err
	}
	// Other shards are other tasks: to look for the files of all in each would take long if there are many.
	amended, err := j.amended(func(shard int) bool { return shard == n })
	if err != nil {
		return "", err
	}
	file, ok := amended[n]
	if !ok {
		return "", fmt.Errorf("shard %d needs no task apply: it is as reduce wrote it", n)
	}
	amends, err := readReport[amendment](j, file.Name)
	if err != nil {
		return "", err
	}
	s, err := j.load(ctx, j.again(n))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.settled.Amend(ctx, s.rows.Records, amends.local(s.rows.Workspaces)); err != nil {
		return "", err
	}
	a := j.begin("apply", n)
	defer func() { a.ended(err) }()
	told := applied{Reasons: map[string]int64{}}
	c, name, err := a.create(".collisions")
	if err != nil {
		return "", err
	}
	var first *record.Record
	if amends.Continues != nil {
		first = amends.Continues.record()
	}
	told.Part, err = s.write(ctx, a, first, c.digested())
	if told.Collisions, err = c.written(name, err); err != nil {
		return "", err
	}
	if told.Rejects, err = s.writeLate(ctx, a, told.Reasons); err != nil {
		return "", err
	}
	return a.report(told)
}

// amended returns those of some shards that Settle has amended.
func (j *Job) amended(some func(shard int) bool) (map[int]File, error) {
	done, err := acceptedWith(j, "settle", []int{0}, func(s settled) []File { return s.of(some) })
	if err != nil {
		return nil, err
	}
	of := map[int]File{}
	for _, a := range done[0].Amended {
		if some(a.Shard) {
			of[a.Shard] = a.File
		}
	}
	return of, nil
}

// writeLate writes the rejects of rows whose URL got no code, and counts their reasons.
func (s *shard) writeLate(ctx context.Context, a *attempt, reasons map[string]int64) (File, error) {
	late := extsort.NewByKey(s.j.sorter(rejectMemory))
	err := emit.FileLate(ctx, s.rows, s.settled, late)
	for at := late.Cursor(ctx, 1); err == nil && at.Next(); {
		_, rej := record.DecodeReject(at.Key(), at.Record())
		reasons[rej.Reason]++
	}
	if err != nil {
		return File{}, errors.Join(err, late.Close())
	}
	w, err := a.writeRejects(ctx, late)
	return w, errors.Join(err, late.Close())
}

func encode(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
