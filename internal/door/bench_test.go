package door

import (
	"bufio"
	"context"
	"io"
	"net"
	"testing"
)

// BenchmarkBridge is one line to a daemon that only echoes an answer, and back:
// what the bridge adds to a call.
func BenchmarkBridge(b *testing.B) {
	ours, theirs := net.Pipe()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	go Bridge(b.Context(), inR, outW, BridgeOptions{Dial: func(context.Context) (net.Conn, error) { return ours, nil }})
	answer := []byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"3 passes"}],"structuredContent":{"passes":[1,2,3]}}}` + "\n")
	go func() {
		in := bufio.NewReader(theirs)
		in.ReadSlice('\n') // the bridge's own line
		for {
			if _, err := in.ReadSlice('\n'); err != nil {
				return
			}
			theirs.Write(answer)
		}
	}()
	out := bufio.NewReader(outR)
	line := []byte(callLine(1, "predict_passes") + "\n")
	b.ReportAllocs()
	for b.Loop() {
		inW.Write(line)
		if _, err := out.ReadSlice('\n'); err != nil {
			b.Fatal(err)
		}
	}
	inW.Close()
	theirs.Close()
}
