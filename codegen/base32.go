package codegen

// Names of the schemes whose codes are in lower case: for print, speech and servers that fold case.
const (
	NameBase32      = "sha256-base32"
	NameKeyedBase32 = "keyed-base32"
)

// Base32Alphabet has the 32 digits of sha256-base32 and keyed-base32 in ascending order, of value and
// of bytes: those without 0, 1, l and o.
const Base32Alphabet = "23456789abcdefghijkmnpqrstuvwxyz"

// NewBase32 returns the scheme sha256-base32 for codes of 1 to 24 characters.
func NewBase32(length int) (Scheme, error) { return Scheme{digits: base32}.WithLength(length) }

// NewKeyedBase32 returns the scheme keyed-base32 for codes of 4 to 16 characters. The secret must
// have at least MinSecret bytes.
func NewKeyedBase32(secret Secret, length int) (Scheme, error) {
	if err := secret.check(NameKeyedBase32); err != nil {
		return Scheme{}, err
	}
	return Scheme{digits: base32, key: newHMACKey(secret.bytes())}.WithLength(length)
}

// appendCode32 appends the first bits of the hash to dst, five a digit. MaxLength digits have 120
// of the 128 bits.
func appendCode32(dst []byte, h Hash, length int) []byte {
	for range length {
		dst = append(dst, Base32Alphabet[h.Hi>>59])
		h = Hash{h.Hi<<5 | h.Lo>>59, h.Lo << 5}
	}
	return dst
}

// rank32 is Scheme.Rank of sha256-base32 and keyed-base32.
func rank32(h Hash, length int) uint64 { return h.Hi >> (64 - 5*min(length, rankDigits)) }
