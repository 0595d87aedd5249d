package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The same call, there and back over pipes in this process, against this server
// and against the official SDK's with the same tool. cpu-ns/op is the whole
// process: server, pipes and the little client.

func BenchmarkCall(b *testing.B) {
	benchCalls(b, func(in io.ReadCloser, out io.WriteCloser) {
		station(Options{}, nil).Serve(b.Context(), in, out, SessionOptions{})
	})
}

func BenchmarkCallOfficialSDK(b *testing.B) {
	benchCalls(b, func(in io.ReadCloser, out io.WriteCloser) {
		s := sdk.NewServer(&sdk.Implementation{Name: "sdk", Version: "1"}, nil)
		type args struct {
			Azimuth   float64 `json:"azimuth_deg"`
			Elevation float64 `json:"elevation_deg"`
		}
		sdk.AddTool(s, &sdk.Tool{Name: "point_antenna", InputSchema: json.RawMessage(`{"type":"object","properties":{
			"azimuth_deg":{"type":"number","minimum":0,"maximum":360},"elevation_deg":{"type":"number","minimum":0,"maximum":90}},
			"required":["azimuth_deg","elevation_deg"],"additionalProperties":false}`)},
			func(context.Context, *sdk.CallToolRequest, args) (*sdk.CallToolResult, any, error) {
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "pointing to az 10.0 el 20.0"}}}, nil, nil
			})
		s.Run(b.Context(), &sdk.IOTransport{Reader: in, Writer: out})
	})
}

func benchCalls(b *testing.B, serve func(in io.ReadCloser, out io.WriteCloser)) {
	fromClient, in := io.Pipe()
	out, toClient := io.Pipe()
	done := make(chan struct{})
	go func() { serve(fromClient, toClient); close(done) }()
	r := bufio.NewReader(out)
	exchange := func(line string) {
		io.WriteString(in, line+"\n")
		if _, err := r.ReadSlice('\n'); err != nil {
			b.Fatal(err)
		}
	}
	exchange(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	io.WriteString(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	b.ReportAllocs()
	start := cpu(b)
	for b.Loop() {
		exchange(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"point_antenna","arguments":{"azimuth_deg":10,"elevation_deg":20}}}`)
	}
	b.ReportMetric(float64(cpu(b)-start)/float64(b.N), "cpu-ns/op")
	in.Close()
	<-done
}

// cpu is the time that this process has spent on a processor.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
