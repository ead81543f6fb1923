package hygiene

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible escapes control characters, which names of files and cells may have and a terminal
// would obey. Tabs and ends of lines stay. It also escapes characters that change the
// direction of text, and bytes that are not UTF-8, which some terminals take for control
// characters.
func Visible(text string) string {
	var b strings.Builder
	for i, r := range text {
		_, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1 || r < ' ' && r != '\n' && r != '\t':
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case r >= 0x7f && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(text[i : i+size])
		}
	}
	return b.String()
}

// VisibleLine is Visible for a text that must be one line: its tabs and ends of lines are escaped, too.
func VisibleLine(text string) string {
	return Visible(strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(text))
}
