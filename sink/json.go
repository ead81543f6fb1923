package sink

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"strconv"
	"strings"
)

// AppendJSON appends a JSON document in its canonical form, which is the same for a jsonb of
// PostgreSQL and a text of SQLite: without spaces, members in byte order of their names, the last
// of equal names, numbers without an exponent. In strings, only quotes, backslashes, control
// characters, U+2028 and U+2029 are escaped. If the document is no JSON, its bytes stay as they
// are.
func AppendJSON(dst, document []byte) []byte {
	v, ok := decodeJSON(document)
	if !ok {
		return append(dst, document...)
	}
	return encodeJSON(dst, v)
}

// encodeJSON appends what decodeJSON has returned.
func encodeJSON(dst []byte, v any) []byte {
	out := bytes.NewBuffer(dst)
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // it was decoded
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// decodeJSON decodes a document. Its numbers have no exponent.
func decodeJSON(document []byte) (v any, ok bool) {
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil, false
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, false
	}
	return decimals(v), true
}

func decimals(v any) any {
	switch v := v.(type) {
	case json.Number:
		return decimal(v)
	case []any:
		for i := range v {
			v[i] = decimals(v[i])
		}
	case map[string]any:
		for name, member := range v {
			v[name] = decimals(member)
		}
	}
	return v
}

// decimal writes a number as PostgreSQL writes it, which stores no exponent and no negative zero
// and keeps zeros at the end. A number that PostgreSQL refuses, because it has too many digits,
// stays as it is.
func decimal(n json.Number) json.Number {
	if !strings.ContainsAny(string(n), "eE") && !strings.HasPrefix(string(n), "-0") {
		return n
	}
	number, negative := strings.CutPrefix(strings.ToLower(string(n)), "-")
	number, exponent, _ := strings.Cut(number, "e")
	whole, fraction, _ := strings.Cut(number, ".")
	shift, err := strconv.ParseInt(cmp.Or(exponent, "0"), 10, 32)
	digits, point := whole+fraction, len(whole)+int(shift)
	if err != nil || point > 131_072 || len(digits)-point > 16_383 {
		return n
	}
	if point < 1 {
		digits, point = strings.Repeat("0", 1-point)+digits, 1
	}
	digits += strings.Repeat("0", max(0, point-len(digits)))
	out := strings.TrimLeft(digits[:point-1], "0") + digits[point-1:point]
	if point < len(digits) {
		out += "." + digits[point:]
	}
	if negative && strings.Trim(out, "0.") != "" {
		out = "-" + out
	}
	return json.Number(out)
}
