package codegen

// A Maker makes the codes of identities: those of a Scheme, without the ones that contain a word
// of a blocklist. Any number of goroutines may use it.
type Maker struct {
	Scheme
	Words *Blocklist // nil: every code will do
}

// IsPlain reports whether First is, of every identity, its hash by Sum and salt 0.
func (m Maker) IsPlain() bool { return m.key == nil && m.Words == nil }

// Word returns the word of the blocklist that a code contains; "": none.
func (m Maker) Word(code []byte) string {
	if m.Words == nil {
		return ""
	}
	return m.Words.Match(code)
}

// First returns the hash with the lowest salt, from 0 to most, whose code is not blocked, and that
// salt. If all of them are blocked, it returns the hash with salt 0, and -1. The url is what Sum
// returns of the identity, whose parts may be nil.
func (m Maker) First(url Hash, canonical, workspace, parts []byte, most int) (Hash, int) {
	var input [256]byte // longer ones are allocated
	first := url
	if m.key != nil {
		first = m.Sum(AppendIdentity(input[:0], canonical, workspace, parts, 0))
	}
	if m.Words == nil {
		return first, 0
	}
	var code [MaxLength]byte
	h := first
	for salt := 0; ; {
		if m.Words.Match(m.AppendCode(code[:0], h)) == "" {
			return h, salt
		}
		if salt++; salt > most {
			return first, -1
		}
		h = m.Sum(AppendIdentity(input[:0], canonical, workspace, parts, salt))
	}
}
