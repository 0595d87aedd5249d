package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// A made-up station with one of everything, the surface that the wire tests
// drive. record, when not nil, is told of every handler that runs.
func station(o Options, record func(string)) *Server {
	if o.Info.Name == "" {
		o.Info = Info{Name: "gsd-mcp", Version: "0.1.0"}
	}
	s := New(o)
	ran := func(format string, a ...any) {
		if record != nil {
			record(fmt.Sprintf(format, a...))
		}
	}
	none := json.RawMessage(`{"type":"object","additionalProperties":false}`)
	read := Annotations{ReadOnly: true, Idempotent: true}
	s.AddTool(Tool{Name: "station_status", Description: "Where things are.", InputSchema: none, Annotations: read,
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"azimuth_deg":{"type":"number"},"frequency_hz":{"type":"integer"}},
			"required":["azimuth_deg","frequency_hz"],"additionalProperties":false}`),
		Handle: func(context.Context, *Call) (*Result, error) {
			return &Result{Text: "pointing at 12.5°", Structured: map[string]any{"azimuth_deg": 12.5, "frequency_hz": 145825000}}, nil
		}})
	s.AddTool(Tool{Name: "predict_passes", Description: "Passes.", Annotations: read,
		InputSchema: json.RawMessage(`{"type":"object","properties":{
			"satellite":{"type":"string","minLength":1,"maxLength":24,"pattern":"^[A-Za-z0-9 ()+._/-]+$"},
			"hours":{"type":"integer","minimum":1,"maximum":72,"default":24},
			"from":{"type":"string","format":"date-time"}},"required":["satellite"],"additionalProperties":false}`),
		Handle: func(_ context.Context, c *Call) (*Result, error) {
			ran("predict_passes %s", c.Args)
			return &Result{Text: string(c.Args)}, nil
		}})
	s.AddTool(Tool{Name: "point_antenna", Description: "Point.", Annotations: Annotations{Idempotent: true},
		InputSchema: json.RawMessage(`{"type":"object","properties":{
			"azimuth_deg":{"type":"number","minimum":0,"maximum":360},
			"elevation_deg":{"type":"number","minimum":0,"maximum":90},
			"options":{"type":"object","properties":{"slow":{"type":"boolean"}},"additionalProperties":false}},
			"required":["azimuth_deg","elevation_deg"],"additionalProperties":false}`),
		Handle: func(_ context.Context, c *Call) (*Result, error) {
			var p struct {
				Azimuth   float64 `json:"azimuth_deg"`
				Elevation float64 `json:"elevation_deg"`
				Options   struct {
					Slow bool `json:"slow"`
				} `json:"options"`
			}
			if err := c.Decode(&p); err != nil {
				return nil, err
			}
			ran("point_antenna %v %v", p.Azimuth, p.Elevation)
			if p.Elevation < 5 {
				return &Result{IsError: true, Text: fmt.Sprintf("elevation %.1f° is below the mask of 5°; ask for 5° or more", p.Elevation),
					Structured: map[string]any{"refused": true, "code": "ELEVATION_BELOW_MASK"}}, nil
			}
			return &Result{Text: fmt.Sprintf("pointing to az %.1f el %.1f", p.Azimuth, p.Elevation)}, nil
		}})
	s.AddTool(Tool{Name: "stop_station", Description: "Stop.", InputSchema: none, Annotations: Annotations{Idempotent: true}, Urgent: true,
		Handle: func(context.Context, *Call) (*Result, error) {
			ran("stop_station")
			return &Result{Text: "stopped"}, nil
		}})
	s.AddTool(Tool{Name: "scan_noise", Description: "Ten steps.", Annotations: read,
		InputSchema: json.RawMessage(`{"type":"object","properties":{"seconds":{"type":"number","minimum":0,"maximum":60}},"required":["seconds"],"additionalProperties":false}`),
		Handle: func(ctx context.Context, c *Call) (*Result, error) {
			var p struct {
				Seconds float64 `json:"seconds"`
			}
			if err := c.Decode(&p); err != nil {
				return nil, err
			}
			for i := 0; i < 10; i++ {
				c.Progress(float64(i), 10, "sweeping")
				select {
				case <-ctx.Done():
					ran("scan_noise: %v", context.Cause(ctx))
					return &Result{IsError: true, Text: "cancelled"}, nil
				case <-time.After(time.Duration(p.Seconds * float64(time.Second) / 10)):
				}
			}
			return &Result{Text: "done"}, nil
		}})
	s.AddTool(Tool{Name: "late_progress", Description: "Reports after it has answered.", InputSchema: none, Annotations: read,
		Handle: func(_ context.Context, c *Call) (*Result, error) {
			time.AfterFunc(time.Second, func() { c.Progress(2, 0, "after") })
			return &Result{Text: "done"}, nil
		}})
	s.AddTool(Tool{Name: "secret_move", Description: "For operators.", InputSchema: none,
		Visible: func(caller any) bool { return caller == "operator" },
		Handle: func(context.Context, *Call) (*Result, error) {
			ran("secret_move")
			return &Result{Text: "moved"}, nil
		}})
	s.AddTool(Tool{Name: "broken_tool", Description: "Fails in every way.", Annotations: read,
		InputSchema:  json.RawMessage(`{"type":"object","properties":{"how":{"enum":["panic","error","nothing","unfit","code"]}},"additionalProperties":false}`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`),
		Handle: func(_ context.Context, c *Call) (*Result, error) {
			switch {
			case strings.Contains(string(c.Args), "panic"):
				panic("a secret of the inside")
			case strings.Contains(string(c.Args), "error"):
				return nil, errors.New("a secret of the inside")
			case strings.Contains(string(c.Args), "nothing"):
				return nil, nil
			case strings.Contains(string(c.Args), "code"):
				return nil, &Error{Code: 1001, Message: "a code of its own"}
			}
			return &Result{Structured: map[string]any{"n": "one"}}, nil
		}})
	s.AddResource(Resource{URI: "station://health", Name: "health", MIMEType: "application/json",
		Read: func(context.Context, any) (string, error) { return `{"verdict":"well"}`, nil }})
	s.AddResource(Resource{URI: "station://broken", Name: "broken",
		Read: func(context.Context, any) (string, error) { panic("a secret of the inside") }})
	s.AddTemplate(Template{URITemplate: "station://satellites/{norad_id}", Name: "satellite", MIMEType: "text/plain",
		Read: func(_ context.Context, _ any, id string) (string, error) {
			if id != "25544" {
				return "", ErrNotFound
			}
			return "ISS (ZARYA)", nil
		},
		Complete: func(_ context.Context, prefix string) (out []string) {
			for i := 25500; i < 25700; i++ {
				if id := fmt.Sprint(i); strings.HasPrefix(id, prefix) {
					out = append(out, id)
				}
			}
			return out
		}})
	s.AddPrompt(Prompt{Name: "plan_passes", Description: "Plan.", Arguments: []PromptArgument{{Name: "satellite", Required: true}, {Name: "hours"}},
		Get: func(_ context.Context, _ any, a map[string]string) ([]Message, error) {
			return []Message{{"user", Text("Plan the passes of " + a["satellite"])}}, nil
		},
		Complete: func(_ context.Context, _, prefix string, _ map[string]string) (out []string) {
			for _, n := range []string{"ISS (ZARYA)", "NOAA 19", "FOX-1B"} {
				if strings.HasPrefix(strings.ToLower(n), strings.ToLower(prefix)) {
					out = append(out, n)
				}
			}
			return out
		}})
	return s
}
