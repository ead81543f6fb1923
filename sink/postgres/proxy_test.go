package postgres

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// A proxy passes connections on to the server and cuts one of them at a
// message of a client: the n-th of all, before or after passing it on. Or it swallows
// what clients say, and takes no new ones.
type proxy struct {
	listener  net.Listener
	to        string
	at        int64 // which message; 0: none
	after     bool
	seen      atomic.Int64
	swallow   atomic.Bool
	swallowed atomic.Int64 // simple queries
	wait      sync.WaitGroup
}

func newProxy(t testing.TB, to string, at int64, after bool) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err)
	p := &proxy{listener: l, to: to, at: at, after: after}
	p.wait.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			p.wait.Go(func() { p.serve(client) })
		}
	})
	return p
}

func (p *proxy) port() int { return p.listener.Addr().(*net.TCPAddr).Port }

// close waits for the connections to end.
func (p *proxy) close() {
	p.listener.Close()
	p.wait.Wait()
}

func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer server.Close()
	p.wait.Go(func() {
		io.Copy(client, server)
		client.Close()
	})
	p.pass(client, server)
}

// pass passes the client's messages on until one is to be cut. The first has no
// type byte.
func (p *proxy) pass(client io.Reader, server io.Writer) {
	for head := 4; ; head = 5 {
		message := make([]byte, head)
		if _, err := io.ReadFull(client, message); err != nil {
			return
		}
		rest := make([]byte, binary.BigEndian.Uint32(message[head-4:])-4)
		if _, err := io.ReadFull(client, rest); err != nil {
			return
		}
		if p.swallow.Load() {
			if head == 4 {
				return
			}
			if message[0] == 'Q' {
				p.swallowed.Add(1)
			}
			continue
		}
		cut := p.seen.Add(1) == p.at
		if cut && !p.after {
			return
		}
		if _, err := server.Write(append(message, rest...)); err != nil || cut {
			return
		}
	}
}
