package audit

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/linkforge/bulk/pipeline/report"
)

// cancelled reads a hundred blocks without a link. The first one ends the context.
type cancelled struct {
	cancel context.CancelCauseFunc
	cause  error
	reads  int
}

func (r *cancelled) Read(b *report.MappingBlock) error {
	if r.reads++; r.reads > 100 {
		return io.EOF
	}
	r.cancel(r.cause)
	b.Reset(0)
	b.Append(&report.MappingRow{Row: report.Row{Outcome: report.Duplicate}})
	return nil
}

// Who looks for the next link of a mapping notices that it is not wanted any more.
func TestLinkCursorIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	rows := &cancelled{cancel: cancel, cause: errors.New("interrupted")}
	c := &linkCursor{linkReader: &linkReader{w: &checker{verifier: &verifier{}}, rows: rows}, ctx: ctx}
	if _, err := c.seek("demo", []byte("1")); err != rows.cause || rows.reads > 1 {
		t.Errorf("%d reads, %v", rows.reads, err)
	}
}
