package door

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gsd-mcp/internal/mcp"
	"gsd-mcp/internal/safety"
)

func connect(t *testing.T, socket string) *Client {
	t.Helper()
	c, err := Dial(t.Context(), socket, "gsd-mcp 1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// The commands work whatever protocol versions the station offers.
func TestClientSpeaksEveryVersion(t *testing.T) {
	for _, versions := range [][]string{mcp.Versions(), {"2026-07-28"}, {"2025-11-25", "2024-11-05"}, {"2024-11-05"}} {
		t.Run(strings.Join(versions, " "), func(t *testing.T) {
			h := open(t, socketPath(t), nil, versions...)
			c := connect(t, h.socket)

			got, err := c.CallTool(t.Context(), "get_thing", nil)
			if err != nil {
				t.Fatal(err)
			}
			if got.Text != "the thing, for supervisor" || got.IsError || got.Refusal != nil || string(got.JSON) != `{"thing":1}` && versions[0] != "2024-11-05" {
				t.Errorf("get_thing = %+v", got)
			}

			got, err = c.CallTool(t.Context(), "move_thing", map[string]any{})
			if err != nil {
				t.Fatal(err)
			}
			if r := got.Refusal; !got.IsError || r == nil || r.Code != safety.Sun || r.Why != "the sun is 2.0° away" || r.Fix != "wait an hour" || !strings.Contains(got.Text, "the sun is 2.0° away") {
				t.Errorf("a refused move = %+v, %+v", got, got.Refusal)
			}

			var rpc *RPCError
			if _, err = c.CallTool(t.Context(), "get_thing", map[string]any{"thing": 7}); !errors.As(err, &rpc) || rpc.Code != codeInvalidParams {
				t.Errorf("a wrong argument = %v, want -32602", err)
			}
			if _, err = c.CallTool(t.Context(), "no_such_tool", nil); !errors.As(err, &rpc) {
				t.Errorf("an unknown tool = %v", err)
			}

			raw, err := c.Private(t.Context(), "gsd/resume", struct{}{})
			var who struct{ Client string }
			if err != nil || json.Unmarshal(raw, &who) != nil || who.Client != "gsd-mcp" {
				t.Errorf("gsd/resume = %s, %v; want it done for gsd-mcp", raw, err)
			}
			var refusal *safety.Refusal
			if _, err = c.Private(t.Context(), "gsd/resume", map[string]any{"fail": "latched"}); !errors.As(err, &refusal) || refusal.Code != safety.EStop || refusal.Why != "latched" {
				t.Errorf("a refused gsd/resume = %v", err)
			}
			if _, err = c.Private(t.Context(), "gsd/resume", map[string]any{"wrong": 1}); !errors.As(err, &rpc) || rpc.Code != codeInvalidParams {
				t.Errorf("gsd/resume with a wrong parameter = %v", err)
			}
			if _, err = c.Private(t.Context(), "gsd/nothing", nil); !errors.As(err, &rpc) || rpc.Code != codeNoMethod {
				t.Errorf("an unknown private method = %v", err)
			}

			tools, err := c.ListTools(t.Context())
			if err != nil || len(tools) != 3 || tools[0].Name != "get_thing" {
				t.Errorf("ListTools = %+v, %v", tools, err)
			}
			text, mime, err := c.ReadResource(t.Context(), "station://thing")
			if err != nil || text != `{"thing":1}` || mime != "application/json" {
				t.Errorf("ReadResource = %q, %q, %v", text, mime, err)
			}
			if _, _, err := c.ReadResource(t.Context(), "station://nothing"); err == nil {
				t.Error("a resource that does not exist is read")
			}
		})
	}
}

func TestClientSubscribes(t *testing.T) {
	for _, versions := range [][]string{{"2026-07-28"}, {"2025-06-18"}} {
		t.Run(versions[0], func(t *testing.T) {
			h := open(t, socketPath(t), nil, versions...)
			c := connect(t, h.socket)
			ctx, cancel := context.WithCancel(t.Context())
			changed, err := c.Subscribe(ctx, "station://thing")
			if err != nil {
				t.Fatal(err)
			}
			other, err := c.Subscribe(t.Context(), "station://thing")
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				h.server.ResourceUpdated("station://thing")
				heard(t, changed, true)
				heard(t, other, true)
			}
			cancel()
			eventually(t, "the subscription is over", func() bool {
				select {
				case _, open := <-changed:
					return !open
				default:
					return false
				}
			})
			h.server.ResourceUpdated("station://thing")
			heard(t, other, true)
			if _, err := c.Subscribe(t.Context(), "station://nothing"); err == nil {
				t.Error("a resource that does not exist can be subscribed to")
			}
			if _, err := c.CallTool(t.Context(), "get_thing", nil); err != nil {
				t.Errorf("a call beside the subscriptions: %v", err)
			}
			h.stop()
			eventually(t, "the channel is closed", func() bool {
				select {
				case _, open := <-other:
					return !open
				default:
					return false
				}
			})
		})
	}
}

func heard(t *testing.T, changed <-chan struct{}, want bool) {
	t.Helper()
	select {
	case _, open := <-changed:
		if open != want {
			t.Fatalf("the subscription's channel gives open = %v, want %v", open, want)
		}
	case <-time.After(patience):
		t.Fatal("no change is heard of")
	}
}

func TestClientGivesUpWhenItsTimeIsOver(t *testing.T) {
	h := open(t, socketPath(t), nil)
	c := connect(t, h.socket)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.CallTool(ctx, "slow_thing", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call that takes too long = %v", err)
	}
	if _, err := c.CallTool(t.Context(), "get_thing", nil); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

func TestClientOfADaemonThatGoesAway(t *testing.T) {
	h := open(t, socketPath(t), nil)
	c := connect(t, h.socket)
	failed := make(chan error, 1)
	go func() {
		_, err := c.CallTool(context.Background(), "slow_thing", nil)
		failed <- err
	}()
	eventually(t, "the call is running", func() bool { return h.did() == "slow" })
	h.door.Sessions()[0].conn.Close()
	select {
	case err := <-failed:
		if !errors.Is(err, errConnectionEnded) {
			t.Errorf("the call ended with %v", err)
		}
	case <-time.After(patience):
		t.Fatal("the call does not end")
	}
	if _, err := c.CallTool(t.Context(), "get_thing", nil); err == nil {
		t.Error("a call on a dead connection works")
	}
}

func TestUnreachableSaysWhyAndWhatToStart(t *testing.T) {
	dir := t.TempDir()
	dead := filepath.Join(dir, "dead.sock")
	l, err := Listen(dead)
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	for socket, why := range map[string]string{filepath.Join(dir, "none.sock"): "there is no such socket", dead: "nobody listens there"} {
		_, err := Dial(t.Context(), socket, "test 1")
		var u *UnreachableError
		if !errors.Is(err, ErrUnreachable) || !errors.As(err, &u) || !strings.Contains(err.Error(), why) || !strings.Contains(u.Hint(), "gsd-mcp serve") {
			t.Errorf("Dial(%s) = %v, want ErrUnreachable because %s", socket, err, why)
		}
	}
}

// Nothing that comes down the wire makes the client panic or wait for ever.
func FuzzClient(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"x"}]}}` + "\n"))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"x","data":{"supported":["2025-11-25"]}}}` + "\n"))
	f.Add([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"x","data":{"door":"full"}}}` + "\n"))
	f.Add([]byte("{\"method\":\"notifications/resources/updated\"}\n{\"id\":1,\"result\":null}\n{\"id\":1,\"error\":7}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		ours, theirs := net.Pipe()
		go func() {
			buf := make([]byte, 4096)
			theirs.Read(buf)
			theirs.Write(data)
			theirs.Close()
		}()
		c := NewClient(ours, "fuzz 1")
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		c.CallTool(ctx, "get_thing", nil)
		if ctx.Err() != nil {
			t.Fatalf("the call does not end after %q", data)
		}
		c.Close()
	})
}
