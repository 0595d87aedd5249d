package mcp

import (
	"bufio"
	"io"
	"testing"
)

// BenchmarkCall is one tools/call with validated arguments, there and back.
func BenchmarkCall(b *testing.B) {
	fromClient, in := io.Pipe()
	out, toClient := io.Pipe()
	go station(Options{}, nil).Serve(b.Context(), fromClient, toClient, SessionOptions{})
	r := bufio.NewReader(out)
	exchange := func(line string) {
		io.WriteString(in, line+"\n")
		if _, err := r.ReadSlice('\n'); err != nil {
			b.Fatal(err)
		}
	}
	exchange(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	b.ReportAllocs()
	for b.Loop() {
		exchange(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"point_antenna","arguments":{"azimuth_deg":10,"elevation_deg":20}}}`)
	}
	in.Close()
}
