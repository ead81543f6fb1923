//go:build linux || darwin

package main

import "testing"

func TestSound(t *testing.T) {
	for content, want := range map[string]bool{
		"3000|12345|2": true, "0||2": false, "30001|12345|2": false, "300|12345|2": false, "3000|12345|1": false, "3000|12345|12": false, "": false,
	} {
		if got := sound(content, 3000); got != want {
			t.Errorf("%s: %t", content, got)
		}
	}
}
