package tools

import (
	"context"
	"encoding/json"
	"fmt"

	"gsd-mcp/internal/mcp"
	"gsd-mcp/internal/radio"
	"gsd-mcp/internal/station"
	"gsd-mcp/internal/unit"
)

const direction = `"type":"object","properties":{"azimuth_deg":{"type":"number"},"elevation_deg":{"type":"number"}},"required":["azimuth_deg","elevation_deg"]`

const keyProperty = `"idempotency_key":{"type":"string","minLength":1,"maxLength":64,"description":"Optional. The same key with the same arguments gives the first answer again and does nothing twice."}`

const moveOutput = `{"type":"object","properties":{"command_id":{"type":"string"},"repeated":{"type":"boolean"},"target":{` + direction + `},"expected_s":{"type":"number","description":"Seconds until arrival"},"follow":{"type":"string","description":"Resource to read or subscribe to until the state is positioned or parked"}},"required":["command_id","repeated","target","expected_s","follow"]}`

func (k *kit) antennaTools() []mcp.Tool {
	return []mcp.Tool{
		{
			Name: "point_antenna", Title: "Point the antenna",
			Description: "Turns the antenna to a direction in the sky and answers at once with a handle. Use it when a person asked for a direction. Do not use it to follow a satellite: book the pass with schedule_pass instead. The station refuses directions below its horizon mask, inside keep-out zones and outside the mount's travel, and says what it would allow; ask check_pointing first when in doubt.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{
				"azimuth_deg":{"type":"number","minimum":0,"maximum":360,"description":"Degrees clockwise from true north"},
				"elevation_deg":{"type":"number","minimum":-90,"maximum":180,"description":"Degrees above the horizontal"},
				"expect_state":{"type":"string","enum":["unknown","standby","slewing","positioned","tracking","parking","parked","stopped","fault"],"description":"Optional. Refuse unless the antenna is in this state, as last read from get_antenna."},
				` + keyProperty + `},"required":["azimuth_deg","elevation_deg"],"additionalProperties":false,
				"examples":[{"azimuth_deg":200,"elevation_deg":45}]}`),
			OutputSchema: json.RawMessage(moveOutput), Annotations: moving, Visible: minRole(station.Operator), Handle: k.pointAntenna,
		},
		{
			Name: "park_antenna", Title: "Park the antenna",
			Description:  "Turns the antenna to its configured park position and answers at once with a handle. Use it when work is done and no pass follows soon. Do not use it during or after a scheduled pass, which parks by itself, nor to stop a move: stop_station does that.",
			InputSchema:  json.RawMessage(`{"type":"object","properties":{` + keyProperty + `},"additionalProperties":false}`),
			OutputSchema: json.RawMessage(moveOutput), Annotations: moving, Visible: minRole(station.Operator), Handle: k.parkAntenna,
		},
		{
			Name: "stop_station", Title: "Stop everything now",
			Description: "Stops motion and transmission at once. Use it when anything looks dangerous, or when a person says stop. Anyone may; it is never queued, limited or approved. Afterwards the station holds until a person resumes it: you cannot. Do not use it to cancel a booking.",
			InputSchema: json.RawMessage(empty), Annotations: stopping, Urgent: true,
			OutputSchema: json.RawMessage(`{"type":"object","properties":{"command_id":{"type":"string"},"latency_ms":{"type":"number"},"sent":{"type":"boolean"},"confirmed":{"type":"boolean","description":"Standstill was read back"},"problems":{"type":"array","items":{"type":"string"}},"next":{"type":"string"}},"required":["command_id","sent","confirmed","problems","next"]}`),
			Visible:      func(c any) bool { w, ok := c.(Who); return ok && w.Role >= station.Observer && w.MayStop },
			Handle:       k.stopStation,
		},
		{
			Name: "check_pointing", Title: "Would the station point there?",
			Description: "Says whether the station would turn the antenna to a direction, or work a pass, without moving anything. Use it before point_antenna or schedule_pass when in doubt. Give either both angles or a pass_id. Do not use it to search the sky step by step: the answer holds the nearest direction that is allowed. A no is an answer, not an error: it carries the code, the reason and what to do.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{
				"azimuth_deg":{"type":"number","minimum":0,"maximum":360,"description":"Degrees clockwise from true north; together with elevation_deg"},
				"elevation_deg":{"type":"number","minimum":-90,"maximum":180,"description":"Degrees above the horizontal"},
				"pass_id":{"type":"string","minLength":5,"maxLength":40,"description":"As predict_passes gives it, such as 25544-20261130T0320Z"}},
				"additionalProperties":false,"examples":[{"azimuth_deg":180,"elevation_deg":20},{"pass_id":"25544-20261130T0320Z"}]}`),
			OutputSchema: json.RawMessage(`{"type":"object","properties":{"allowed":{"type":"boolean"},"code":{"type":"string"},"why":{"type":"string"},"fix":{"type":"string"},"limits":{"type":"object"},"nearest_allowed":{` + direction + `},"plan":{"type":"object"}},"required":["allowed"]}`),
			Annotations:  reading, Visible: reader, Handle: k.checkPointing,
		},
		{
			Name: "tune_radio", Title: "Tune the receiver",
			Description: "Sets the frequency, and optionally the mode, of the receiver, or of the uplink side without keying it. Use it to listen outside of scheduled passes. Do not use it during one: the station corrects Doppler by itself. Nothing here can transmit.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{
				"frequency_hz":{"type":"integer","minimum":100000,"maximum":10500000000,"description":"Hertz"},
				"mode":{"type":"string","enum":["FM","USB","LSB","CW","AM","DV"]},
				"link":{"type":"string","enum":["downlink","uplink"],"default":"downlink"}},"required":["frequency_hz"],"additionalProperties":false,
				"examples":[{"frequency_hz":145800000,"mode":"FM"}]}`),
			OutputSchema: json.RawMessage(`{"type":"object","properties":{"command_id":{"type":"string"},"repeated":{"type":"boolean"},"link":{"type":"string"},"frequency_hz":{"type":"integer","description":"As the radio reads back"},"mode":{"type":"string"}},"required":["command_id","frequency_hz","link"]}`),
			Annotations:  moving, Visible: minRole(station.Operator), Handle: k.tuneRadio,
		},
	}
}

func (k *kit) pointAntenna(ctx context.Context, c *mcp.Call) (*mcp.Result, error) {
	var a struct {
		Az     float64 `json:"azimuth_deg"`
		El     float64 `json:"elevation_deg"`
		Expect string  `json:"expect_state"`
		Key    string  `json:"idempotency_key"`
	}
	if err := c.Decode(&a); err != nil {
		return nil, err
	}
	target := unit.AzEl{AzDeg: a.Az, ElDeg: a.El}
	return k.command(ctx, station.Command{Caller: caller(c), Verb: station.VerbPoint, Args: target, Key: a.Key, Expect: a.Expect, Target: &target},
		func(data json.RawMessage) string {
			return fmt.Sprintf("Turning to azimuth %.1f°, elevation %.1f°%s. Read get_antenna until it is positioned.", a.Az, a.El, seconds(data))
		})
}

func (k *kit) parkAntenna(ctx context.Context, c *mcp.Call) (*mcp.Result, error) {
	var a struct {
		Key string `json:"idempotency_key"`
	}
	if err := c.Decode(&a); err != nil {
		return nil, err
	}
	return k.command(ctx, station.Command{Caller: caller(c), Verb: station.VerbPark, Args: map[string]any{}, Key: a.Key},
		func(data json.RawMessage) string {
			p := k.Station.ParkPosition()
			return fmt.Sprintf("Parking at azimuth %.1f°, elevation %.1f°%s. Read get_antenna until it is parked.", p.AzDeg, p.ElDeg, seconds(data))
		})
}

func seconds(data json.RawMessage) string {
	var m station.MoveAnswer
	if json.Unmarshal(data, &m) != nil {
		return ""
	}
	return fmt.Sprintf(", about %.0f s", m.ExpectedS)
}

func (k *kit) stopStation(ctx context.Context, c *mcp.Call) (*mcp.Result, error) {
	ans := k.Station.Stop(ctx, caller(c), "")
	text := "Stopped: standstill was read back."
	switch {
	case !ans.Sent:
		text = fmt.Sprintf("The stop did NOT reach every device (%v): use the switch at the station.", ans.Problems)
	case !ans.Confirmed:
		text = fmt.Sprintf("The stop was sent; standstill has not been confirmed (%v). Read get_antenna.", ans.Problems)
	}
	return &mcp.Result{Text: text + " The station holds until a person resumes it.", Structured: ans}, nil
}

func (k *kit) checkPointing(ctx context.Context, c *mcp.Call) (*mcp.Result, error) {
	var a struct {
		Az   *float64 `json:"azimuth_deg"`
		El   *float64 `json:"elevation_deg"`
		Pass string   `json:"pass_id"`
	}
	if err := c.Decode(&a); err != nil {
		return nil, err
	}
	if (a.Az != nil) != (a.El != nil) || (a.Az != nil) == (a.Pass != "") {
		return nil, paramError("arguments must hold either azimuth_deg and elevation_deg, or pass_id")
	}
	out := map[string]any{"allowed": true}
	if a.Pass != "" {
		p, ref, err := k.findPass(ctx, a.Pass)
		if err != nil {
			return nil, err
		}
		if ref == nil {
			plan, r, warn := k.plan(p)
			if ref = r; ref == nil {
				out["plan"] = planView(plan, warn)
			}
		}
		if ref == nil {
			return &mcp.Result{Text: fmt.Sprintf("Yes: the pass %s can be worked.", p.ID), Structured: out}, nil
		}
		return no(ref)
	}
	if ref := k.Station.CheckPointing(unit.AzEl{AzDeg: *a.Az, ElDeg: *a.El}); ref != nil {
		return no(ref)
	}
	return &mcp.Result{Text: fmt.Sprintf("Yes: azimuth %.1f°, elevation %.1f° is allowed now.", *a.Az, *a.El), Structured: out}, nil
}

// no is a refusal as an answer: a dry run that says no is not an error.
func no(ref interface {
	Sentence() string
	MarshalJSON() ([]byte, error)
}) (*mcp.Result, error) {
	b, err := ref.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, err
	}
	delete(m, "refused")
	m["allowed"] = false
	return &mcp.Result{Text: "No. " + ref.Sentence(), Structured: m}, nil
}

func (k *kit) tuneRadio(ctx context.Context, c *mcp.Call) (*mcp.Result, error) {
	var a struct {
		Hz   int64      `json:"frequency_hz"`
		Mode radio.Mode `json:"mode"`
		Link radio.Path `json:"link"`
	}
	if err := c.Decode(&a); err != nil {
		return nil, err
	}
	t := &station.TuneRequest{Path: a.Link, FrequencyHz: a.Hz, Mode: a.Mode}
	return k.command(ctx, station.Command{Caller: caller(c), Verb: station.VerbTune, Args: t, Tune: t}, func(json.RawMessage) string {
		return fmt.Sprintf("The %s is on %.6f MHz.", a.Link, float64(a.Hz)/1e6)
	})
}
