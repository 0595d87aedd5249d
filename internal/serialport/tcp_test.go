package serialport_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"gsd-mcp/internal/serialport"
)

func TestTCPPortBehavesLikeASerialOne(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	path := "tcp://" + l.Addr().String()
	p, err := serialport.Open(t.Context(), serialport.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := p.Read(ctx, make([]byte, 8)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read = %v, want a timeout", err)
	}
	server.Write([]byte("old"))
	buf := make([]byte, 8)
	n := 0
	for n == 0 { // until the old bytes have arrived
		if n, err = p.Read(t.Context(), buf[:1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Discard(); err != nil {
		t.Fatal(err)
	}
	if err := p.Discard(); err != nil {
		t.Fatalf("discard of nothing: %v", err)
	}
	if err := p.Write(t.Context(), []byte("+p\n")); err != nil {
		t.Fatal(err)
	}
	if n, err := server.Read(buf); err != nil || string(buf[:n]) != "+p\n" {
		t.Errorf("the server got %q, %v", buf[:n], err)
	}
	server.Write([]byte("new"))
	if n, err := p.Read(t.Context(), buf); err != nil || string(buf[:n]) != "new" {
		t.Errorf("read %q, %v; want new", buf[:n], err)
	}
	server.Close()
	if _, err := p.Read(t.Context(), buf); !errors.Is(err, serialport.ErrUnplugged) {
		t.Errorf("read after the server ended = %v, want ErrUnplugged", err)
	}
	if err := p.Discard(); !errors.Is(err, serialport.ErrUnplugged) {
		t.Errorf("discard after the server ended = %v, want ErrUnplugged", err)
	}
	p.Close()
	l.Close()
	if _, err := serialport.Open(t.Context(), serialport.Config{Path: path}); !errors.Is(err, serialport.ErrMissing) || !strings.Contains(err.Error(), "is the server running") {
		t.Errorf("open without a server = %v, want ErrMissing with what to check", err)
	}
}
