package mcp

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The official Go SDK's client is one of the peers that this server must
// satisfy, in both eras.
func TestOfficialGoClient(t *testing.T) {
	for _, tt := range []struct {
		name    string
		ask     string // "" is the SDK's default, which probes with server/discover
		offered []string
		want    string
	}{
		{"default", "", nil, "2026-07-28"},
		{"default, server without the modern era", "", []string{"2025-11-25", "2025-06-18"}, "2025-11-25"},
		{"2025-11-25", "2025-11-25", nil, "2025-11-25"},
		{"2025-06-18", "2025-06-18", nil, "2025-06-18"},
		{"2024-11-05", "2024-11-05", nil, "2024-11-05"},
		{"2025-03-26 is offered another", "2025-03-26", nil, "2025-11-25"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ran := make(chan string, 64)
			goClientDay(t, station(Options{Versions: tt.offered, PageSize: 3}, func(what string) { ran <- what }), ran, tt.ask, tt.want)
		})
	}
}

// goClientDay does with the SDK's client what an operator's copilot does.
func goClientDay(t *testing.T, srv *Server, ran <-chan string, ask, want string) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	end := make(chan error, 1)
	go func() { end <- srv.Serve(ctx, fromClient, toClient, SessionOptions{Caller: "operator"}) }()

	updates, changes, progress := make(chan string, 16), make(chan string, 16), make(chan float64, 64)
	c := sdk.NewClient(&sdk.Implementation{Name: "go-sdk", Version: "1"}, &sdk.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) { updates <- r.Params.URI },
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { changes <- "tools" },
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			progress <- r.Params.Progress
		},
	})
	s, err := c.Connect(ctx, &sdk.IOTransport{Reader: fromServer, Writer: toServer}, &sdk.ClientSessionOptions{ProtocolVersion: ask})
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	if got := s.InitializeResult().ProtocolVersion; got != want {
		t.Fatalf("the client speaks %s, want %s", got, want)
	}

	var names []string
	for tool, err := range s.Tools(ctx, nil) {
		if err != nil {
			t.Fatalf("list tools: %v", err)
		}
		names = append(names, tool.Name)
	}
	if len(names) != 8 || !slices.Contains(names, "secret_move") {
		t.Errorf("the operator sees the tools %v", names)
	}

	call := func(name string, args any) (*sdk.CallToolResult, error) {
		return s.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: args})
	}
	r, err := call("station_status", nil)
	if err != nil || r.IsError {
		t.Fatalf("station_status: %v, %v", r, err)
	}
	if m, _ := r.StructuredContent.(map[string]any); want > "2025-06" && m["azimuth_deg"] != 12.5 {
		t.Errorf("station_status has the structured content %v", r.StructuredContent)
	}
	if r, err = call("point_antenna", map[string]any{"azimuth_deg": 10, "elevation_deg": 2}); err != nil || !r.IsError || len(r.Content) != 2 {
		t.Errorf("a refusal came as %+v, %v; want an error result with two texts", r, err)
	}
	_, err = call("predict_passes", map[string]any{"satellite": "ISS", "hours": 200})
	if code(err) != CodeParams || !strings.Contains(err.Error(), "<= 72, got 200") {
		t.Errorf("hours: 200 gave %v, want -32602 with the limit", err)
	}

	if res, err := s.ReadResource(ctx, &sdk.ReadResourceParams{URI: "station://satellites/25544"}); err != nil || res.Contents[0].Text != "ISS (ZARYA)" {
		t.Errorf("read a template's resource: %+v, %v", res, err)
	}
	if _, err := s.ReadResource(ctx, &sdk.ReadResourceParams{URI: "station://nope"}); err == nil {
		t.Error("an unknown resource was read")
	}
	if p, err := s.GetPrompt(ctx, &sdk.GetPromptParams{Name: "plan_passes", Arguments: map[string]string{"satellite": "ISS"}}); err != nil || len(p.Messages) != 1 {
		t.Errorf("prompt: %+v, %v", p, err)
	}
	if _, err := s.GetPrompt(ctx, &sdk.GetPromptParams{Name: "plan_passes"}); code(err) != CodeParams {
		t.Errorf("a prompt without its argument gave %v", err)
	}
	if res, err := s.Complete(ctx, &sdk.CompleteParams{Ref: &sdk.CompleteReference{Type: "ref/prompt", Name: "plan_passes"},
		Argument: sdk.CompleteParamsArgument{Name: "satellite", Value: "noaa"}}); err != nil || !slices.Equal(res.Completion.Values, []string{"NOAA 19"}) {
		t.Errorf("completion: %+v, %v", res, err)
	}

	if err := s.Subscribe(ctx, &sdk.SubscribeParams{URI: "station://health"}); err != nil {
		t.Fatalf("subscribe: %v", err)
	}
	// A modern subscription is a stream of its own, which the SDK does not wait
	// for: publish until it is heard.
	await(t, "an update", func() { srv.ResourceUpdated("station://health") }, updates, "station://health")
	await(t, "a list change", func() { srv.ListChanged("tools") }, changes, "tools")
	if err := s.Unsubscribe(ctx, &sdk.UnsubscribeParams{URI: "station://health"}); err != nil {
		t.Errorf("unsubscribe: %v", err)
	}

	params := &sdk.CallToolParams{Name: "scan_noise", Arguments: map[string]any{"seconds": 0.6}}
	params.SetProgressToken("p1")
	if _, err := s.CallTool(ctx, params); err != nil || len(progress) < 2 {
		t.Errorf("scan with progress: %v, %d reports", err, len(progress))
	}
	short, stop := context.WithTimeout(ctx, 100*time.Millisecond)
	if _, err := s.CallTool(short, &sdk.CallToolParams{Name: "scan_noise", Arguments: map[string]any{"seconds": 30}}); err == nil {
		t.Error("a cancelled call was answered")
	}
	stop()
	for what := ""; what != "scan_noise: cancelled by the client"; { // the SDK sends the cancellation behind the caller's back
		select {
		case what = <-ran:
		case <-time.After(5 * time.Second):
			t.Fatal("the cancellation did not reach the handler")
		}
	}
	if _, err := call("stop_station", nil); err != nil {
		t.Errorf("stop after a cancelled call: %v", err)
	}

	start := time.Now()
	s.Close()
	if err := <-end; err != nil {
		t.Errorf("Serve = %v", err)
	}
	if d := time.Since(start); d > srv.o.Drain-100*time.Millisecond {
		t.Errorf("the session took %v to end: the cancelled call held it", d)
	}
}

func code(err error) int64 {
	var e *jsonrpc.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

func await(t *testing.T, what string, publish func(), heard <-chan string, want string) {
	t.Helper()
	for deadline := time.After(5 * time.Second); ; {
		publish()
		select {
		case got := <-heard:
			if got != want {
				t.Errorf("%s of %s came, want %s", what, got, want)
			}
			return
		case <-time.After(20 * time.Millisecond):
		case <-deadline:
			t.Errorf("no client heard %s", what)
			return
		}
	}
}
