package codegen

import (
	"bytes"
	"errors"
	"unicode"
	"unicode/utf8"
)

// MaxWorkspace is the most characters that a workspace identifier may have.
const MaxWorkspace = 64

// Errors of CheckWorkspace.
var (
	ErrWorkspaceEmpty   = errors.New("workspace is blank")
	ErrWorkspaceLong    = errors.New("workspace has more than 64 characters")
	ErrWorkspaceUTF8    = errors.New("workspace is not UTF-8")
	ErrWorkspaceBar     = errors.New("workspace contains '|'")
	ErrWorkspaceControl = errors.New("workspace contains a control character")
)

// CheckWorkspace returns nil if ws is a workspace identifier, otherwise one of the
// errors above. An identifier is 1 to 64 characters of UTF-8 without '|' (workspace
// "a|1" with salt 0 would hash as "a" with salt 1) and without control characters
// (category Cc). It is not trimmed.
func CheckWorkspace(ws []byte) error {
	switch {
	case len(ws) == 0:
		return ErrWorkspaceEmpty
	case !utf8.Valid(ws):
		return ErrWorkspaceUTF8
	case utf8.RuneCount(ws) > MaxWorkspace:
		return ErrWorkspaceLong
	case bytes.IndexByte(ws, '|') >= 0:
		return ErrWorkspaceBar
	case bytes.ContainsFunc(ws, unicode.IsControl):
		return ErrWorkspaceControl
	}
	return nil
}
