package verify

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/linkforge/bulk/pipeline/outcome"
	"github.com/linkforge/bulk/pipeline/readback"
	"github.com/linkforge/bulk/pipeline/report"
)

// Whoever looks for the next link of a mapping notices that it is not wanted any more,
// though none of the rows is a link.
func TestLinkCursorIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cause, reads := errors.New("interrupted"), 0
	read := func() (*readback.MappingRow, error) {
		if reads++; reads > 100 {
			return nil, io.EOF
		}
		cancel(cause)
		return &readback.MappingRow{Row: report.Row{Outcome: outcome.Duplicate}}, nil
	}
	c := &linkCursor{ctx: ctx, rows: &deriver{run: new(run)}, read: read}
	if _, err := c.seek("demo", []byte("1")); err != cause || reads > 1 {
		t.Errorf("%d reads, %v", reads, err)
	}
}
