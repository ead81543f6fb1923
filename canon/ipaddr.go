package canon

import (
	"bytes"
	"encoding/binary"
	"net/netip"
)

// appendIPv6 appends an IPv6 address in brackets as RFC 5952 writes it, with
// IPv4-mapped addresses in mixed notation (§5). A zone is refused.
func appendIPv6(dst, host []byte) ([]byte, error) {
	if len(host) > len("[0000:0000:0000:0000:0000:ffff:255.255.255.255]") || host[len(host)-1] != ']' {
		return dst, BadHost
	}
	ip, err := netip.ParseAddr(string(host[1 : len(host)-1]))
	if err != nil || !ip.Is6() || ip.Zone() != "" {
		return dst, BadHost
	}
	return append(ip.AppendTo(append(dst, '[')), ']'), nil
}

// endsInNumber reports whether the last label of name has only digits, or is "0x"
// and any hexadecimal digits. The name is then an IPv4 address (WHATWG URL §3.5). One
// dot at the end does not count.
func endsInNumber(name []byte) bool {
	name = bytes.TrimSuffix(name, []byte("."))
	label := name[bytes.LastIndexByte(name, '.')+1:]
	hex, ok := bytes.CutPrefix(label, []byte("0x"))
	for _, c := range hex {
		if c-'0' > 9 && !(ok && unhex(c) <= 15) {
			return false
		}
	}
	return true
}

// parseIPv4 reads an address of one to four numbers. The last number fills all
// bytes that are left (WHATWG URL §3.5, IPv4 parser).
func parseIPv4(name []byte) (ip uint32, ok bool) {
	name = bytes.TrimSuffix(name, []byte("."))
	for room := 32; ; room -= 8 {
		part, rest, more := bytes.Cut(name, []byte("."))
		n, ok := parseIPv4Number(part)
		switch {
		case !ok || room == 0:
			return 0, false
		case !more:
			return ip | uint32(n), n < 1<<room
		case n > 255:
			return 0, false
		}
		ip |= uint32(n) << (room - 8)
		name = rest
	}
}

// parseIPv4Number reads a number that is octal after "0", hexadecimal after "0x" and
// otherwise decimal. "0x" alone is zero. A number of more than 32 bits is returned as
// 1<<32.
func parseIPv4Number(s []byte) (n uint64, ok bool) {
	base := uint64(10)
	if hex, ok := bytes.CutPrefix(s, []byte("0x")); ok {
		s, base = hex, 16
	} else if s[0] == '0' {
		s, base = s[1:], 8
	}
	for _, c := range s {
		d := uint64(unhex(c))
		if d >= base {
			return 0, false
		}
		n = min(n*base+d, 1<<32)
	}
	return n, true
}

func appendIPv4(dst []byte, ip uint32) []byte {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], ip)
	return netip.AddrFrom4(b).AppendTo(dst)
}
