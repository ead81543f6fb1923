package main

import (
	"context"
	"log/slog"
	"regexp"
)

// fieldFlags are the flags of the fields that errors of the library name, as Config.Out. Source.Map of
// a Config is Options.Map to package source. Of several types that have such a field, all have the
// same flag.
var fieldFlags = map[string]string{
	"AllowEmpty": "allow-empty", "AsOf": "as-of", "Attrs": "attrs", "BaseURL": "base-url", "Campaign": "expand", "CodeLength": "code-length", "Scheme.Fold": "fold-case",
	"Codes.Pattern": "code-pattern", "Codes.Reserved": "reserved", "DefaultDomain": "default-domain", "Domains": "domains", "DryRun": "dry-run", "Inputs": "inputs", "KeepCreated": "keep-created",
	"Legacy": "legacy", "Limit": "limit", "MaxRejects": "max-rejects", "MaxRetries": "max-retries", "Memory": "memory", "NewRun": "new-run", "OnConflict": "on-conflict", "ExpectRows": "expect-rows", "Partial": "partial", "NoRules": "no-rules",
	"Out": "out", "Overwrite": "overwrite", "Owner": "owner", "Profile.MaxLength": "max-url-length", "Profile.StripParams": "strip-params", "ReportFormat": "report-format", "ReportOrder": "report-order",
	"Rules.ExpiresIn": "expires-in", "Rules.Identity": "identity", "Schema": "schema", "Scheme.CounterStart": "counter-start", "Scheme.Multiplier": "counter-multiplier",
	"Scheme.Name": "scheme", "Scheme.Secret": "scheme-key-file", "Secret": "scheme-key-file", "TargetBase": "target-base", "TempDir": "tmp", "Words": "blocklist", "Workers": "workers", "Workspace": "workspace",
	"CodeColumn": "code-column", "Delimiter": "delimiter", "Encoding": "encoding", "Source.Encoding": "encoding", "Map": "map", "Profile": "profile", "URLColumn": "url-column", "WorkspaceColumn": "workspace-column",
	"Source.CodeColumn": "code-column", "Source.Map": "map", "Source.URLColumn": "url-column", "Source.WorkspaceColumn": "workspace-column",
}

// field matches a field of the configuration of a library in a text.
var field = regexp.MustCompile(`\b(?:Config|Options|Rules)\.([A-Z][A-Za-z]*(?:\.[A-Z][A-Za-z]*)?)`)

// inFlags returns a text of the library with flags in place of the fields that it names.
func inFlags(text string) string {
	return field.ReplaceAllStringFunc(text, func(name string) string {
		if flag := fieldFlags[field.FindStringSubmatch(name)[1]]; flag != "" {
			return "--" + flag
		}
		return name
	})
}

// flagged is a slog.Handler whose messages name flags.
type flagged struct{ slog.Handler }

func (h flagged) Handle(ctx context.Context, r slog.Record) error {
	r.Message = inFlags(r.Message)
	return h.Handler.Handle(ctx, r)
}

func (h flagged) WithAttrs(attrs []slog.Attr) slog.Handler {
	return flagged{h.Handler.WithAttrs(attrs)}
}

func (h flagged) WithGroup(name string) slog.Handler { return flagged{h.Handler.WithGroup(name)} }
