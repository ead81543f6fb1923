package charset

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "windows-1252": "windows-1252", "ISO-8859-15": "iso-8859-15", "UTF-16LE": "utf-16le",
		"iso-8859-12": "!there is no iso-8859-12", "utf-8": `!"utf-8" is what inputs`, "latin1": `!"latin1" is not windows-1250`, "iso-8859-17": "!", "windows-874": "!",
	} {
		got, err := Parse(text)
		if fault, bad := strings.CutPrefix(want, "!"); bad != (err != nil) || bad && !strings.HasPrefix(err.Error(), fault) || !bad && got != want {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
	if n := len(Names()); n != 9+15+2 {
		t.Error(Names())
	}
}

func decode(name, text string) string {
	got, err := io.ReadAll(transform.NewReader(iotest.OneByteReader(strings.NewReader(text)), NewReader(name)))
	if err != nil {
		panic(err)
	}
	return string(got)
}

// The bytes that each encoding lacks, and its characters: as other tables of them have it.
func TestTables(t *testing.T) {
	for _, name := range Names() {
		if IsWide(name) {
			continue
		}
		lacks := ""
		for c := range 256 {
			if text := decode(name, string([]byte{byte(c)})); text == string([]byte{byte(c)}) && c >= utf8.RuneSelf {
				lacks += fmt.Sprintf(" %x", c)
			} else if r, n := utf8.DecodeRuneInString(text); n != len(text) || r == utf8.RuneError || c < utf8.RuneSelf && r != rune(c) {
				t.Errorf("%s: %x is %q", name, c, text)
			}
		}
		if want := lacking[name]; strings.TrimSpace(lacks) != want {
			t.Errorf("%s lacks%s, not %s", name, lacks, want)
		}
	}
	for name, want := range map[string]string{
		"windows-1252": "caf\u00e9\u20ac", "windows-1251": "caf\u0439\u0402", "iso-8859-15": "caf\u00e9\u0080", "iso-8859-11": "caf\u0e49\u0080",
	} {
		if got := decode(name, "caf\xe9\x80"); got != want {
			t.Errorf("%s: %q, not %q", name, got, want)
		}
	}
}

// lacking is what the tables of Python lack, but CA of windows-1255, which later tables have.
var lacking = map[string]string{
	"windows-1250": "81 83 88 90 98",
	"windows-1251": "98",
	"windows-1252": "81 8d 8f 90 9d",
	"windows-1253": "81 88 8a 8c 8d 8e 8f 90 98 9a 9c 9d 9e 9f aa d2 ff",
	"windows-1254": "81 8d 8e 8f 90 9d 9e",
	"windows-1255": "81 8a 8c 8d 8e 8f 90 9a 9c 9d 9e 9f d9 da db dc dd de df fb fc ff",
	"windows-1256": "",
	"windows-1257": "81 83 88 8a 8c 90 98 9a 9c 9f a1 a5",
	"windows-1258": "81 8a 8d 8e 8f 90 9a 9d 9e",
	"iso-8859-1":   "",
	"iso-8859-2":   "",
	"iso-8859-3":   "a5 ae be c3 d0 e3 f0",
	"iso-8859-4":   "",
	"iso-8859-5":   "",
	"iso-8859-6":   "a1 a2 a3 a5 a6 a7 a8 a9 aa ab ae af b0 b1 b2 b3 b4 b5 b6 b7 b8 b9 ba bc bd be c0 db dc dd de df f3 f4 f5 f6 f7 f8 f9 fa fb fc fd fe ff",
	"iso-8859-7":   "ae d2 ff",
	"iso-8859-8":   "a1 bf c0 c1 c2 c3 c4 c5 c6 c7 c8 c9 ca cb cc cd ce cf d0 d1 d2 d3 d4 d5 d6 d7 d8 d9 da db dc dd de fb fc ff",
	"iso-8859-9":   "",
	"iso-8859-10":  "",
	"iso-8859-11":  "db dc dd de fc fd fe ff",
	"iso-8859-13":  "",
	"iso-8859-14":  "",
	"iso-8859-15":  "",
	"iso-8859-16":  "",
}

// UTF-16 is read as x/text reads it; halves of pairs are told from characters.
func TestWide(t *testing.T) {
	for name, endian := range map[string]unicode.Endianness{UTF16LE: unicode.LittleEndian, UTF16BE: unicode.BigEndian} {
		rapid.Check(t, func(t *rapid.T) {
			text := rapid.String().Draw(t, "text")
			coded, err := unicode.UTF16(endian, unicode.IgnoreBOM).NewEncoder().String(text)
			if got := decode(name, coded); err != nil || got != text {
				t.Errorf("%s: %q, not %q", name, got, text)
			}
		})
	}
	for coded, want := range map[string]string{
		"a\x00\x3d\xd8": "a\xed\xa0\xbd", "\x3d\xd8a\x00": "\xed\xa0\xbda", "\x00\xdc\x3d\xd8": "\xed\xb0\x80\xed\xa0\xbd", "\x3d\xd8\x3d\xd8\x00\xdeb\x00": "\xed\xa0\xbd😀b", "a\x00b": "a\xff",
	} {
		if got := decode(UTF16LE, coded); got != want || utf8.ValidString(got) {
			t.Errorf("%q: %q, not %q", coded, got, want)
		}
	}
}

// However the text is cut, it is read alike.
func FuzzReader(f *testing.F) {
	f.Add("caf\xe9\x81", uint8(2))
	f.Add("\x3d\xd8\x00\xdea", uint8(25))
	f.Fuzz(func(t *testing.T, text string, n uint8) {
		name := Names()[int(n)%len(Names())]
		whole, _, err := transform.String(NewReader(name), text)
		if got := decode(name, text); err != nil || got != whole {
			t.Errorf("%s: %q, not %q, %v", name, got, whole, err)
		}
		if utf8.ValidString(text) && !bytes.ContainsFunc([]byte(text), func(r rune) bool { return r >= utf8.RuneSelf }) && !IsWide(name) && whole != text {
			t.Errorf("%s: %q", name, whole)
		}
	})
}
