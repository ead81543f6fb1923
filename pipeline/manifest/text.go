package manifest

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
