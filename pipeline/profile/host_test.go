package profile

import "testing"

func TestHost(t *testing.T) {
	for _, tt := range []struct{ cell, host, domain string }{
		{"https://bit.example/x", "bit.example", "bit.example"},
		{" HTTPS://User:p@w@Bit.Example:8080?x ", "bit.example:8080", "bit.example:8080"},
		{"bit.example/x", "bit.example", "bit.example"},
		{"//bit.example/x", "bit.example", "bit.example"},
		{"bit.example", "bit.example", "bit.example"},
		{"Bit.Example#x", "bit.example", "bit.example"},
		{`bit.example\x`, "bit.example", "bit.example"},
		{"http://localhost/x", "localhost", "localhost"},
		{"localhost", "", "localhost"},
		{"MENÜ.Example", "menÜ.example", "menÜ.example"},
		{"\xff.Example", "\xff.example", "\xff.example"},
		{"http://[::1]:80/", "[::1]:80", "[::1]:80"},
		{"bit.example/?u=http://other.example/", "bit.example", "bit.example"},
		{"/x", "", ""},
		{"x", "", "x"},
		{"x/y.z", "", "x"},
		{"?x.y", "", ""},
		{"https://", "", ""},
		{"null", "", ""},
		{"NULL", "", ""},
		{" ", "", ""},
		{"", "", ""},
	} {
		if got := string(HostOf([]byte(tt.cell))); got != tt.host {
			t.Errorf("host of %q: %q, want %q", tt.cell, got, tt.host)
		}
		if got := string(DomainOf([]byte(tt.cell))); got != tt.domain {
			t.Errorf("domain of %q: %q, want %q", tt.cell, got, tt.domain)
		}
	}
}

func TestHostAllocatesNothing(t *testing.T) {
	cell := []byte("https://bit.example/x")
	if n := testing.AllocsPerRun(100, func() { HostOf(cell) }); n != 0 {
		t.Errorf("%g allocations", n)
	}
}
