package main

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/linkforge/bulk/pipeline/account"
)

// logAccount writes an account as a log line, and each reason of rejects as one of its own.
func (u *ui) logAccount(a *account.Account) {
	level := map[account.Level]slog.Level{account.Done: slog.LevelInfo, account.Warning: slog.LevelWarn, account.Problem: slog.LevelError}[a.Level]
	u.result.Log(context.Background(), level, a.Title, logAttrs(a)...)
	file := a.Get("rejects_file")
	for i := range a.Facts {
		f := &a.Facts[i]
		if f.In != reasonsOf {
			continue
		}
		attrs := []any{"reason", f.Key, "rows", f.Value, "file", file.Value}
		if f.Note != "" {
			attrs = append(attrs, "hint", f.Note)
		}
		if e := f.Example; e != nil {
			attrs = append(attrs, "source", e.Source, "row", e.Row, "example", e.Text)
		}
		u.result.Warn("rows were rejected", attrs...)
	}
}

// reasonsOf is where the rejects by reason are.
const reasonsOf = "reasons"

// logAttrs returns an account as keys and values of a log line.
func logAttrs(a *account.Account) (attrs []any) {
	for i := range a.Facts {
		f := &a.Facts[i]
		key := f.Key
		if f.Log != "" {
			key = f.Log
		}
		if key == "-" || f.In == reasonsOf || f.Value == nil && f.By == nil && f.Full != nil {
			continue
		}
		attrs = append(attrs, key, logValue(f))
		if len(f.By) > 0 && f.Value != nil {
			attrs = append(attrs, key+"_by", partsText(f.By))
		}
		if e := f.Example; e != nil && e.In == "" {
			attrs = append(attrs, key+"_example", e.Text)
		}
	}
	return attrs
}

// logValue returns the value of a fact in a log.
func logValue(f *account.Fact) any {
	switch v := f.Value.(type) {
	case nil:
		return partsText(f.By)
	case []string:
		return short(v)
	case account.List:
		return strings.Join(v, ", ")
	case account.Names:
		return jsonList(v)
	case account.ID:
		return int64(v)
	case time.Duration:
		return v.Round(time.Millisecond)
	}
	return f.Value
}
