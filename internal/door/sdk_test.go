package door

import (
	"io"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The official Go client, which we did not write, works through the bridge and
// does not notice that the daemon was restarted.
func TestOfficialClientThroughTheBridge(t *testing.T) {
	socket := socketPath(t)
	h := open(t, socket, nil)
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	lost := make(chan string, 10)
	go func() {
		done <- Bridge(t.Context(), inR, outW, BridgeOptions{Socket: socket, Build: "build-1", Note: func(s string) { lost <- s }})
		outW.Close()
	}()
	client := sdk.NewClient(&sdk.Implementation{Name: "official", Version: "1"}, nil)
	s, err := client.Connect(t.Context(), &sdk.IOTransport{Reader: outR, Writer: inW}, nil)
	if err != nil {
		t.Fatal(err)
	}
	call := func() {
		t.Helper()
		res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "get_thing", Arguments: map[string]any{}})
		if err != nil || res.IsError {
			t.Fatalf("get_thing = %+v, %v", res, err)
		}
	}
	call()
	h.stop()
	<-lost
	open(t, socket, nil)
	call()
	s.Close()
	inW.Close()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("the bridge ended with %v", err)
		}
	case <-time.After(patience):
		t.Error("the bridge outlives its client")
	}
}
