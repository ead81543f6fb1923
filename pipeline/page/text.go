package page

import (
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/linkforge/bulk/pipeline/account"
	"github.com/linkforge/bulk/pipeline/hygiene"
)

// mostText is how many characters of a text are shown.
const mostText = 300

// mostName is how many characters of a text are shown that has a number beside it.
const mostName = 80

// show makes a text from anywhere fit for a page.
func show[T ~string](text T) string {
	return cut(hygiene.VisibleLine(hygiene.Redact(string(text))), mostText)
}

// cut shortens a text to so many characters.
func cut(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

// showName is show for a text that has a number beside it.
func showName(text string) string { return cut(show(text), mostName) }

// showValue is show for the value of a parameter of URLs, which may be a secret by the parameter's name.
func showValue(name, value string) string {
	lead := "?" + name + "="
	safe := hygiene.Redact(lead + value)
	return show(strings.TrimPrefix(safe, lead))
}

// decoded is a part of the query of a canonical URL as people write it.
func decoded(text string) string {
	if plain, err := url.QueryUnescape(text); err == nil && utf8.ValidString(plain) {
		return plain
	}
	return text
}

// number writes a number for people.
func number(n int64) string { return account.Number(n) }

// share writes a part of a whole as a percentage.
func share(part, whole int64) string {
	if whole == 0 {
		return "–"
	}
	return percent(float64(part) / float64(whole))
}

// percent writes a share of 1. What is not nothing is not shown as 0, and what is not all not as 100.
func percent(p float64) string {
	switch {
	case p == 0:
		return "0 %"
	case p == 1:
		return "100 %"
	case p < 0.0005:
		return "< 0.1 %"
	case p < 1 && p >= 0.9995:
		return "> 99.9 %"
	}
	return fmt.Sprintf("%.1f %%", 100*p)
}

// odds writes a chance that may be very small.
func odds(p float64) string {
	if p == 0 || p >= 0.001 {
		return percent(p)
	}
	if p < 1e-9 {
		return "under 1 in a billion"
	}
	return "1 in " + large(twoDigits(1/p))
}

// twoDigits rounds a number of 1 or more to two digits.
func twoDigits(x float64) float64 {
	unit := math.Pow(10, max(math.Floor(math.Log10(x))-1, 0))
	return math.Round(x/unit) * unit
}

// large writes a number that may be very large or very small.
func large(x float64) string {
	switch {
	case x == 0:
		return "0"
	case x < 0.01:
		return "under 0.01"
	case x < 100 && x != math.Trunc(x):
		return fmt.Sprintf("%.2f", x)
	case x < 1e15:
		return account.Number(int64(math.Round(x)))
	}
	digits := strconv.FormatFloat(x, 'e', 1, 64)
	mantissa, exponent, _ := strings.Cut(digits, "e+")
	return mantissa + " × 10" + superscript.Replace(strings.TrimLeft(exponent, "0"))
}

var superscript = strings.NewReplacer("0", "⁰", "1", "¹", "2", "²", "3", "³", "4", "⁴", "5", "⁵", "6", "⁶", "7", "⁷", "8", "⁸", "9", "⁹")

// size writes a number of bytes.
func size(n int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	x, unit := float64(n), 0
	for x >= 1024 && unit < len(units)-1 {
		x, unit = x/1024, unit+1
	}
	if unit == 0 {
		return account.Counted(n, "byte")
	}
	if x < 10 {
		return fmt.Sprintf("%.1f %s", x, units[unit])
	}
	return fmt.Sprintf("%.0f %s", x, units[unit])
}

// seconds writes a time.
func seconds(s float64) string {
	switch {
	case s < 0.001:
		return "under 0.001 s"
	case s < 1:
		return fmt.Sprintf("%.3f s", s)
	case s < 60:
		return fmt.Sprintf("%.1f s", s)
	}
	return time.Duration(s * float64(time.Second)).Round(time.Second).String()
}

// moment writes a time for people.
func moment(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04 UTC") }

// sentence begins a text with a capital letter and ends it with a full stop.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	first, n := utf8.DecodeRuneInString(text)
	text = strings.ToUpper(string(first)) + text[n:]
	if strings.HasSuffix(text, ".") || strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}
