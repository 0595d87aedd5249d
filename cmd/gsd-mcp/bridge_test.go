package main

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// printf requests | gsd-mcp stdio: the end of the input is no reason to lose an
// answer.
func TestTheBridgeAnswersEverythingBeforeItEnds(t *testing.T) {
	p := newPost(t, "").serve()
	p.measured()
	cmd := exec.CommandContext(t.Context(), program(t), "stdio", "--socket", p.socket)
	cmd.Stdin = strings.NewReader(strings.Join([]string{lineInitialize, lineInitialized,
		lineCall(1, "list_visible_satellites", `{"hours":24}`), lineCall(2, "predict_passes", `{"norad_id":25544,"hours":72}`),
		lineCall(3, "get_antenna", `{}`), `{"jsonrpc":"2.0","id":4,"method":"resources/read","params":{"uri":"station://health"}}`,
		`{"jsonrpc":"2.0","id":5,"method":"gsd/resume","params":{}}`, `broken`,
		`{"jsonrpc":"2.0","id":6,"method":"ping"}`}, "\n")) // and no newline at the end
	out, notes, code := finish(t, cmd)
	if code != exitDone || notes != "" {
		t.Errorf("exit code %d: %s", code, notes)
	}
	for id, want := range map[string]string{`"id":"init"`: `"serverInfo"`, `"id":1,`: `"total"`, `"id":2,`: `"pass_id"`, `"id":3,`: `"measured"`, `"id":4,`: `"contents"`,
		`"id":5,`: `-32601`, `"id":null`: `-32700`, `"id":6,`: `"result":{}`} {
		found := 0
		for line := range strings.Lines(out) {
			if strings.Contains(line, id) {
				if found++; !strings.Contains(line, want) {
					t.Errorf("the answer with %s is %.300s, want %s in it", id, line, want)
				}
			}
		}
		if found != 1 {
			t.Errorf("%d answers with %s in\n%.2000s", found, id, out)
		}
	}
}

// The same for the simulated station in the bridge's own process.
func TestTheSimulatedStationAnswersEverythingBeforeItEnds(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), program(t), "--sim", "--role", "observer")
	cmd.Stdin = strings.NewReader(strings.Join([]string{lineInitialize, lineInitialized, lineCall(1, "list_visible_satellites", `{"hours":24}`),
		lineCall(2, "park_antenna", `{}`), `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`, ""}, "\n"))
	out, notes, code := finish(t, cmd)
	if code != exitDone {
		t.Fatalf("exit code %d: %s", code, notes)
	}
	for _, want := range []string{`"title":"SIMULATED: `, `This is a SIMULATED station`, `"total"`, `NOT_PERMITTED`, `"check_pointing"`} {
		if !strings.Contains(out, want) {
			t.Errorf("%s is not in the answers: %.1500s", want, out)
		}
	}
	if strings.Contains(out, `"point_antenna"`) {
		t.Error("an observer's list holds point_antenna")
	}
}

// A daemon that dies under open calls: they are answered, and the same bridge
// goes on with the next one.
func TestTheBridgeOutlivesTheDaemon(t *testing.T) {
	p := newPost(t, "").serve()
	s := p.bridge().opens()
	s.say(lineCall(1, "get_antenna", `{}`))
	s.hears(`"id":1,`, `"structuredContent"`)
	p.cmd.Process.Signal(syscall.SIGSTOP) // open calls, for certain
	s.say(lineCall(2, "get_antenna", `{}`))
	s.say(lineCall(3, "get_radio", `{}`))
	p.cmd.Process.Kill()
	p.cmd.Wait()
	for range 2 {
		s.hears(`-32603`, `read get_station_health`)
	}
	p.serve()
	s.asks(4, "get_antenna")
	p.end(t)
	p.serve()
	s.asks(500, "get_station_health")
}

// asks calls a tool until the station that is coming back answers it. Meanwhile
// the bridge may say that nothing was done and to ask again: so it does.
func (s *stream) asks(id int, tool string) {
	s.t.Helper()
	for deadline := time.Now().Add(soon); ; id++ {
		s.say(lineCall(id, tool, `{}`))
		line := s.hears(fmt.Sprintf(`"id":%d,`, id))
		if strings.Contains(line, `"structuredContent"`) {
			return
		}
		if !strings.Contains(line, `nothing was done`) || time.Now().After(deadline) {
			s.t.Fatalf("got %s\nwant an answer of %s", line, tool)
		}
	}
}

// A session that is gone in mid-move takes its move along.
func TestAMoveEndsWithItsSession(t *testing.T) {
	p := newPost(t, "")
	p.args = append(p.args, "--sim-rate", "2")
	p.serve().measured()
	s := p.bridge().opens()
	s.say(lineCall(1, "point_antenna", `{"azimuth_deg":350,"elevation_deg":45}`))
	s.hears(`"id":1,`, `"follow"`)
	s.in.Close()
	eventuallyTrue(t, "the antenna stops", soon, func() bool { return p.antenna().State == "stopped" })
	if a := p.antenna(); a.Measured == nil || a.Measured.Az > 300 {
		t.Errorf("the antenna went on to %+v", a.Measured)
	}
	if out, notes, code := p.cli("call", "point_antenna", "azimuth_deg=100", "elevation_deg=60"); code != exitDone {
		t.Errorf("it is not free again: %d %s %s", code, out, notes)
	}
}
