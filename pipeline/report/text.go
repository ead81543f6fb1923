package report

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Text is bytes that are nearly always UTF-8, such as the name of a file or a
// column. In JSON it is a string, or {"base64": "…"} where it is not UTF-8.
type Text string

type base64Text struct {
	Base64 *[]byte `json:"base64"`
}

// MarshalJSON implements json.Marshaler.
func (t Text) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return marshal(string(t))
	}
	raw := []byte(t)
	return marshal(base64Text{&raw})
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		return json.Unmarshal(data, (*string)(t))
	}
	var b base64Text
	if err := json.Unmarshal(data, &b); err != nil {
		return err
	}
	if b.Base64 == nil {
		return fmt.Errorf("neither a string nor base64: %s", data)
	}
	*t = Text(*b.Base64)
	return nil
}

// validUTF8 is EscapeInvalid for a string.
func validUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string(EscapeInvalid([]byte(s)))
}

// EscapeInvalid writes each byte that is not UTF-8 as %XX, as text columns and the
// store have it. Text that is UTF-8 is returned as it is.
func EscapeInvalid(text []byte) []byte {
	if utf8.Valid(text) {
		return text
	}
	var out []byte
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if r == utf8.RuneError && n == 1 {
			out = fmt.Appendf(out, "%%%02X", text[0])
		} else {
			out = append(out, text[:n]...)
		}
		text = text[n:]
	}
	return out
}
