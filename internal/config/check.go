package config

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net"
	"net/url"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gsd-mcp/internal/radio"
	"gsd-mcp/internal/rotator"
	"gsd-mcp/internal/spell"
	"gsd-mcp/internal/unit"
)

// Bauds lists the line rates that a port may have: the serial library takes any
// number, a negative one included.
func Bauds() []int {
	return []int{300, 600, 1200, 2400, 4800, 9600, 19200, 38400, 57600, 115200, 230400, 460800, 921600}
}

var (
	idPattern        = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)
	callsignPattern  = regexp.MustCompile(`^[A-Z0-9]{1,4}[0-9][A-Z0-9]{0,4}[A-Z](/[A-Z0-9]{1,4})?$`)
	principalPattern = regexp.MustCompile(`^(uid:[0-9]{1,10}|(user|group):[A-Za-z_][A-Za-z0-9_.@-]{0,62}\$?)$`)
	modePattern      = regexp.MustCompile(`^[A-Z0-9][A-Z0-9-]{0,11}$`)
	countryPattern   = regexp.MustCompile(`^[A-Z]{2}$`)
)

// A check holds every value of a configuration against its range and against
// the other values.
type check struct {
	c                  *Config
	problems, warnings []Problem
}

func (k *check) bad(key, what, fix string) {
	k.problems = append(k.problems, Problem{Key: key, What: what, Fix: fix})
}

func (k *check) warn(key, what, fix string) {
	k.warnings = append(k.warnings, Problem{Key: key, What: what, Fix: fix})
}

// within demands lo <= v <= hi, which NaN fails.
func (k *check) within(key string, v, lo, hi float64, unit string) bool {
	if lo <= v && v <= hi {
		return true
	}
	if unit != "" && unit != "°" && unit != "%" {
		unit = " " + unit
	}
	k.bad(key, fmt.Sprintf("%s is %s%s, outside %s..%s", key, number(v), unit, number(lo), number(hi)), "give a value in that range")
	return false
}

// number writes a value as a person would: 1000000, not 1e+06.
func number(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

func (k *check) whole(key string, v, lo, hi int, unit string) bool {
	return k.within(key, float64(v), float64(lo), float64(hi), unit)
}

func (k *check) choice(key, v string, choices ...string) {
	if !slices.Contains(choices, v) {
		k.bad(key, fmt.Sprintf("%s is %s", key, quote(v)), "choose one of: "+strings.Join(choices, ", "))
	}
}

// unknown says that a name is none of names, and which was likely meant.
func (k *check) unknown(key, name string, names []string) {
	fix := "choose one of: " + strings.Join(names, ", ")
	if best := spell.Nearest(name, names); best != "" {
		fix = fmt.Sprintf("did you mean %s?", best)
	}
	k.bad(key, fmt.Sprintf("%s is %s, which is not known", key, quote(name)), fix)
}

// text demands short printable text: it goes to screens, topics and models.
func (k *check) text(key, v string, max int) {
	if unit.Printable(v, max) != v {
		k.bad(key, fmt.Sprintf("%s has control characters, line breaks, double blanks or more than %d letters", key, max), "give one short line of text")
	}
}

func (k *check) absolute(key, path string) {
	if path != "" && !filepath.IsAbs(path) {
		k.bad(key, fmt.Sprintf("%s is %s, not an absolute path", key, quote(path)), "give the whole path, beginning with /")
	}
}

func (k *check) all() {
	if k.finite(reflect.ValueOf(k.c).Elem(), ""); len(k.problems) > 0 {
		return // every range would complain again
	}
	switch fix := fmt.Sprintf("write version = %d at the top of the file", Schema); {
	case k.c.Version == 0:
		k.bad("version", "the version of the file's format is missing", fix)
	case k.c.Version > Schema:
		k.bad("version", fmt.Sprintf("version is %d, this program reads %d", k.c.Version, Schema), "install the gsd-mcp that the file was written for")
	case k.c.Version < Schema:
		k.bad("version", fmt.Sprintf("version is %d, this program reads %d", k.c.Version, Schema), fix)
	}
	k.station()
	k.horizon()
	k.keepOuts()
	k.rotator()
	k.antenna()
	k.radios()
	k.transmit()
	k.satellites()
	k.elements()
	k.timing()
	k.hub()
	k.access()
	k.rotctl()
	k.rest()
}

// finite finds numbers that are no numbers: a configuration built in code has
// not gone through the parser's own check.
func (k *check) finite(v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Float64:
		if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			k.bad(path, fmt.Sprintf("%s is %v, which is no number to work with", path, f), "give a number")
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			k.finite(v.Index(i), fmt.Sprintf("%s[%d]", path, i+1))
		}
	case reflect.Struct:
		if v.Type() == timeType {
			return
		}
		for i := range v.NumField() {
			k.finite(v.Field(i), join(path, tag(v.Type().Field(i))))
		}
	}
}

func (k *check) station() {
	s := k.c.Station
	if !idPattern.MatchString(s.ID) {
		what := fmt.Sprintf("station.id is %s", quote(s.ID))
		if s.ID == "" {
			what = "station.id is missing"
		}
		k.bad("station.id", what, "give 1 to 32 small letters, digits and hyphens, like gs-london")
	}
	k.text("station.name", s.Name, 64)
	if s.Callsign != "" && !callsignPattern.MatchString(s.Callsign) {
		k.bad("station.callsign", fmt.Sprintf("station.callsign is %s, which is no call sign", quote(s.Callsign)), "write it in capitals, like G0ABC")
	}
	lat := k.within("station.latitude_deg", s.LatitudeDeg, -90, 90, "°")
	lon := k.within("station.longitude_deg", s.LongitudeDeg, -180, 180, "°")
	k.within("station.altitude_m", s.AltitudeM, -500, 9000, "m")
	if lat && lon && math.Abs(s.LatitudeDeg) < 0.01 && math.Abs(s.LongitudeDeg) < 0.01 {
		k.bad("station.latitude_deg", "the station is at 0°, 0°, in the Gulf of Guinea", "give latitude_deg (north positive) and longitude_deg (east positive)")
	}
}

func (k *check) horizon() {
	h := k.c.Horizon
	if len(h.Points) == 0 {
		k.within("horizon.elevation_deg", h.ElevationDeg, -5, 90, "°")
		return
	}
	if len(h.Points) > 720 {
		k.bad("horizon.points", fmt.Sprintf("the horizon has %d points, more than 720", len(h.Points)), "keep one point per half degree at most")
		return
	}
	if _, err := k.c.Mask(); err != nil {
		k.bad("horizon.points", err.Error(), "write points = [[0, 5], [90, 12], [180, 3], [270, 5]], pairs of azimuth and elevation round the full circle")
	}
}

func (k *check) keepOuts() {
	for i, z := range k.c.KeepOut {
		at := fmt.Sprintf("keep_out[%d]", i+1)
		if z.Name == "" || z.Reason == "" {
			k.bad(at, "a keep-out zone has no name or no reason", "say what is there: refusals quote both")
		}
		k.text(at+".name", z.Name, 40)
		k.text(at+".reason", z.Reason, 120)
		a := k.within(at+".azimuth_deg", z.AzimuthDeg[0], 0, 360, "°") && k.within(at+".azimuth_deg", z.AzimuthDeg[1], 0, 360, "°")
		if a && z.AzimuthDeg[0] == z.AzimuthDeg[1] {
			k.bad(at+".azimuth_deg", fmt.Sprintf("%s.azimuth_deg begins and ends at %v°", at, z.AzimuthDeg[0]), "give [from, to], clockwise; the whole circle is [0, 360]")
		}
		e := k.within(at+".elevation_deg", z.ElevationDeg[0], -90, 90, "°") && k.within(at+".elevation_deg", z.ElevationDeg[1], -90, 90, "°")
		if e && !(z.ElevationDeg[0] < z.ElevationDeg[1]) {
			k.bad(at+".elevation_deg", fmt.Sprintf("%s.elevation_deg runs from %v° to %v°, not upwards", at, z.ElevationDeg[0], z.ElevationDeg[1]), "give [lowest, highest]")
		}
	}
}

// tcpPort begins a port that is a device server on the network.
const tcpPort = "tcp://"

// port checks the port of a device; network is whether its protocol exists over
// TCP only.
func (k *check) port(at, port string, baud int, network bool) {
	switch {
	case port == "":
		k.bad(at+".port", at+".port is missing", "give the port, best as /dev/serial/by-id/...; list them with: gsd-mcp devices")
	case strings.HasPrefix(port, tcpPort):
		host, number, err := net.SplitHostPort(strings.TrimPrefix(port, tcpPort))
		if n, nerr := strconv.Atoi(number); err != nil || nerr != nil || n < 1 || n > 65535 || host == "" || unit.Printable(host, 255) != host {
			k.bad(at+".port", fmt.Sprintf("%s.port is %s, which is no host with a port", at, quote(port)), "give tcp://127.0.0.1:4533, or the address of the device server")
		} else if !loopback(host) {
			k.warn(at+".port", fmt.Sprintf("%s.port is %s on the network: such servers know no passwords, so whoever reaches it drives the device past every rule of this station", at, quote(port)), "keep it on a network of its own, or reach it through ssh -L")
		}
	case network && port != SimPort:
		k.bad(at+".port", fmt.Sprintf("%s.port is %s, and this driver speaks to a server over TCP", at, quote(port)), "give the server, like tcp://127.0.0.1:4533")
	case port == SimPort, strings.HasPrefix(port, "/dev/serial/by-"), strings.HasPrefix(port, "/dev/gsd-"), strings.HasPrefix(port, "/dev/pts/"):
	case !filepath.IsAbs(port):
		k.bad(at+".port", fmt.Sprintf("%s.port is %s, not an absolute path", at, quote(port)), `give a path like /dev/serial/by-id/..., tcp://host:port of a device server, or "sim" for a simulated device`)
	case strings.HasPrefix(port, "/dev/ttyUSB"), strings.HasPrefix(port, "/dev/ttyACM"):
		k.warn(at+".port", fmt.Sprintf("%s.port is %s, a name that another device may have after the next start", at, quote(port)), "use its link in /dev/serial/by-id")
	}
	if baud != 0 && !slices.Contains(Bauds(), baud) {
		k.bad(at+".baud", fmt.Sprintf("%s.baud is %d, not a usual line rate", at, baud), "choose one of: "+strings.Trim(strings.Join(strings.Fields(fmt.Sprint(Bauds())), ", "), "[]"))
	}
}

func (k *check) rotator() {
	r, l, w := k.c.Rotator, k.c.Rotator.Limits, k.c.Rotator.Watch
	var wire *rotator.Driver
	if r.Driver == "" {
		if r.Port != "" || r.Profile != "" {
			k.bad("rotator.driver", "rotator.driver is missing", `give a profile, or the driver of the controller's protocol, like driver = "easycomm2"`)
		}
	} else {
		d, err := rotator.Lookup(r.Driver)
		if err != nil {
			var names []string
			for _, d := range rotator.Drivers() {
				names = append(names, d.Name)
			}
			k.unknown("rotator.driver", r.Driver, names)
		} else {
			wire = &d
		}
		k.port("rotator", r.Port, r.Baud, err == nil && d.Baud == 0)
	}
	n := len(k.problems)
	k.within("rotator.offset_azimuth_deg", r.OffsetAzimuthDeg, -360, 360, "°")
	k.within("rotator.offset_elevation_deg", r.OffsetElevationDeg, -90, 90, "°")
	k.within("rotator.deadband_deg", r.DeadbandDeg, 0.05, 10, "°")
	k.whole("rotator.min_interval_ms", r.MinIntervalMs, 0, 60000, "ms")
	k.whole("rotator.settle_ms", r.SettleMs, 0, 60000, "ms")
	k.within("rotator.limits.azimuth_min_deg", l.AzimuthMinDeg, -720, 720, "°")
	k.within("rotator.limits.azimuth_max_deg", l.AzimuthMaxDeg, -720, 720, "°")
	k.within("rotator.limits.elevation_min_deg", l.ElevationMinDeg, -90, 210, "°")
	k.within("rotator.limits.elevation_max_deg", l.ElevationMaxDeg, -90, 210, "°")
	k.within("rotator.limits.margin_deg", l.MarginDeg, 0, 20, "°")
	rising := func(axis string, lo, hi float64) {
		if lo < hi && !(hi-lo > 2*l.MarginDeg) {
			k.bad("rotator.limits.margin_deg", fmt.Sprintf("a margin of %v° at both ends leaves nothing of the %s travel %v°..%v°", l.MarginDeg, axis, lo, hi), "give a smaller margin")
		} else if !(lo < hi) {
			k.bad("rotator.limits."+axis+"_max_deg", fmt.Sprintf("rotator.limits: %s_min_deg %v is not below %s_max_deg %v", axis, lo, axis, hi), "swap or correct them")
		}
	}
	rising("azimuth", l.AzimuthMinDeg, l.AzimuthMaxDeg)
	rising("elevation", l.ElevationMinDeg, l.ElevationMaxDeg)
	k.within("rotator.limits.azimuth_speed_dps", l.AzimuthSpeedDps, 0.05, 90, "°/s")
	k.within("rotator.limits.elevation_speed_dps", l.ElevationSpeedDps, 0.05, 90, "°/s")
	k.within("rotator.limits.acceleration_dps2", l.AccelerationDps2, 0.05, 360, "°/s²")
	k.within("rotator.limits.max_turns", l.MaxTurns, 0.25, 4, "turns")
	k.within("rotator.limits.speed_factor", l.SpeedFactor, 0.1, 1, "")
	k.within("rotator.limits.unknown_wrap_deg", l.UnknownWrapDeg, 0, 90, "°")
	k.whole("rotator.limits.duty_on_s", l.DutyOnS, 0, 3600, "s")
	k.whole("rotator.limits.duty_window_s", l.DutyWindowS, 1, 7200, "s")
	if l.DutyOnS > l.DutyWindowS {
		k.bad("rotator.limits.duty_on_s", fmt.Sprintf("rotator.limits: duty_on_s %d is longer than duty_window_s %d", l.DutyOnS, l.DutyWindowS), "give a shorter one, or 0 for unlimited")
	}
	k.within("rotator.watch.stall_deg", w.StallDeg, 0.1, 10, "°")
	k.whole("rotator.watch.stall_s", w.StallS, 1, 60, "s")
	k.whole("rotator.watch.start_s", w.StartS, 0, 30, "s")
	k.within("rotator.watch.wrong_way_deg", w.WrongWayDeg, 0.5, 20, "°")
	k.within("rotator.watch.overshoot_deg", w.OvershootDeg, 0.5, 30, "°")
	k.within("rotator.watch.uncommanded_deg", w.UncommandedDeg, 0.5, 20, "°")
	k.within("rotator.watch.jump_factor", w.JumpFactor, 1, 10, "")
	k.whole("rotator.watch.stale_moving_s", w.StaleMovingS, 1, 30, "s")
	k.whole("rotator.watch.stale_idle_s", w.StaleIdleS, 6, 300, "s") // idle polls come every 5 s
	k.whole("rotator.watch.stop_s", w.StopS, 1, 30, "s")
	k.whole("rotator.watch.stop_retry_ms", w.StopRetryMs, 100, 5000, "ms")
	k.within("rotator.watch.track_error_deg", w.TrackErrorDeg, 0.5, 45, "°")
	k.whole("rotator.watch.track_error_s", w.TrackErrorS, 1, 60, "s")
	k.whole("rotator.watch.reversal_pause_ms", w.ReversalPauseMs, 0, 10000, "ms")
	k.whole("rotator.watch.max_reversals_per_min", w.MaxReversalsPerMin, 1, 120, "per minute")
	k.whole("rotator.watch.max_starts_per_min", w.MaxStartsPerMin, 1, 600, "per minute")
	k.within("rotator.park.azimuth_deg", r.Park.AzimuthDeg, 0, 360, "°")
	k.within("rotator.park.elevation_deg", r.Park.ElevationDeg, -90, 90, "°")
	if wire != nil && len(k.problems) == n {
		k.wire(wire)
	}
	if k.c.HasRotator() && len(k.problems) == n {
		k.park()
	}
}

// wire demands nothing that the driver's protocol cannot say: a deadband below
// its resolution makes the mount hunt (hazard M-32), and a direction outside its
// range would be refused in the middle of a pass. Both are in the controller's
// own degrees, as the limits are.
func (k *check) wire(d *rotator.Driver) {
	c, l := d.Caps, k.c.Rotator.Limits
	if v := k.c.Rotator.DeadbandDeg; !(v >= c.ResolutionDeg) {
		k.bad("rotator.deadband_deg", fmt.Sprintf("a deadband of %v° is below the %v° that %s can tell apart: the mount would hunt", v, c.ResolutionDeg, d.Name),
			fmt.Sprintf("give %v or more", c.ResolutionDeg))
	}
	inside := func(key string, v, lo, hi float64) {
		if !(lo <= v && v <= hi) {
			k.bad("rotator.limits."+key, fmt.Sprintf("%s %v° is outside the %v°..%v° that %s can say", key, v, lo, hi, d.Name), "give the range in the controller's own degrees; a shift against the sky is an offset")
		}
	}
	inside("azimuth_min_deg", l.AzimuthMinDeg, c.AzMinDeg, c.AzMaxDeg)
	inside("azimuth_max_deg", l.AzimuthMaxDeg, c.AzMinDeg, c.AzMaxDeg)
	if !c.AzimuthOnly {
		inside("elevation_min_deg", l.ElevationMinDeg, c.ElMinDeg, c.ElMaxDeg)
		inside("elevation_max_deg", l.ElevationMaxDeg, c.ElMinDeg, c.ElMaxDeg)
	}
	if m := l.MarginDeg - slack; c.AzimuthOnly && !(l.ElevationMinDeg+m <= 0 && 0 <= l.ElevationMaxDeg-m) {
		k.bad("rotator.limits.elevation_max_deg", fmt.Sprintf("%s has no elevation axis and always reads 0°, which the limits %v°..%v° with the margin of %v° leave out", d.Name, l.ElevationMinDeg, l.ElevationMaxDeg, l.MarginDeg),
			fmt.Sprintf("give elevation_min_deg = %v and elevation_max_deg = %v, and the tilt of the antenna as offset_elevation_deg", -l.MarginDeg-0.1, l.MarginDeg+0.1))
	}
}

// slack is the rounding of a 0.1° wire format, as in package safety.
const slack = 0.06

// park demands that the antenna may rest where it is told to rest.
func (k *check) park() {
	r, l := k.c.Rotator, k.c.Rotator.Limits
	p := r.Park
	m, s := l.MarginDeg, slack
	el := p.ElevationDeg - r.OffsetElevationDeg
	if !(l.ElevationMinDeg+m-s <= el && el <= l.ElevationMaxDeg-m+s) {
		k.bad("rotator.park.elevation_deg", fmt.Sprintf("the park elevation %v° is outside the limits %v°..%v° (margin and offset counted)", p.ElevationDeg, l.ElevationMinDeg+m+r.OffsetElevationDeg, l.ElevationMaxDeg-m+r.OffsetElevationDeg), "park inside the limits")
	}
	lo := l.AzimuthMinDeg + m - s
	if first := lo + unit.Norm360(p.AzimuthDeg-r.OffsetAzimuthDeg-lo); !(first <= l.AzimuthMaxDeg-m+s) {
		k.bad("rotator.park.azimuth_deg", fmt.Sprintf("the park azimuth %v° is outside the limits %v°..%v° (margin and offset counted)", p.AzimuthDeg, l.AzimuthMinDeg+m+r.OffsetAzimuthDeg, l.AzimuthMaxDeg-m+r.OffsetAzimuthDeg), "park inside the limits")
	}
	if mask, err := k.c.Mask(); err == nil && !(p.ElevationDeg >= mask.At(p.AzimuthDeg)-s) {
		k.bad("rotator.park.elevation_deg", fmt.Sprintf("the park position az %v° el %v° is below the horizon mask of %.1f° there", p.AzimuthDeg, p.ElevationDeg, mask.At(p.AzimuthDeg)), "park higher, or correct [horizon]")
	}
	for _, z := range k.c.KeepOut {
		span := unit.Norm360(z.AzimuthDeg[1] - z.AzimuthDeg[0])
		if off := unit.Norm360(p.AzimuthDeg - z.AzimuthDeg[0]); (slack < off && off < span-slack || span == 0) && z.ElevationDeg[0]-s < p.ElevationDeg && p.ElevationDeg < z.ElevationDeg[1]-s {
			k.bad("rotator.park.azimuth_deg", fmt.Sprintf("the park position az %v° el %v° is inside the keep-out zone %q", p.AzimuthDeg, p.ElevationDeg, z.Name), "park outside of it")
		}
	}
}

func (k *check) antenna() {
	a := k.c.Antenna
	k.choice("antenna.kind", a.Kind, "yagi", "dish")
	k.within("antenna.beamwidth_deg", a.BeamwidthDeg, 0.1, 180, "°")
	k.within("antenna.sun_separation_deg", a.SunSeparationDeg, 0, 90, "°")
	if a.Kind == "dish" && a.SunSeparationDeg == 0 {
		k.warn("antenna.sun_separation_deg", "the sun may shine into the dish: sun_separation_deg is 0", "a dish heats what sits in its focus; 5 is the default")
	}
	if r := k.c.Rotator; k.c.HasRotator() && r.DeadbandDeg > a.BeamwidthDeg/2 {
		k.bad("rotator.deadband_deg", fmt.Sprintf("a deadband of %v° leaves the target outside half the beam of %v°", r.DeadbandDeg, a.BeamwidthDeg), "give a deadband below half the beamwidth")
	}
}

func (k *check) radios() {
	served := map[string]string{}
	if len(k.c.Radio) > 2 {
		k.bad("radio[3]", fmt.Sprintf("there are %d radios, more than 2", len(k.c.Radio)), "keep one for the downlink and one for the uplink")
	}
	for i, r := range k.c.Radio {
		at, network := fmt.Sprintf("radio[%d]", i+1), false
		if r.Driver == "" {
			k.bad(at+".driver", at+".driver is missing", `give a profile, like profile = "icom-ic9700"`)
		} else if m, err := radio.Lookup(r.Driver); err == nil {
			network = m.Baud == 0
		} else {
			var names []string
			for _, m := range radio.Models() {
				names = append(names, m.Name)
			}
			k.unknown(at+".driver", r.Driver, names)
		}
		k.port(at, r.Port, r.Baud, network)
		k.choice(at+".role", r.Role, "both", "downlink", "uplink")
		k.choice(at+".keying_line", r.KeyingLine, "none", "rts", "dtr")
		k.whole(at+".address", r.Address, 0, 0xdf, "")
		paths := []string{r.Role}
		if r.Role == "both" {
			paths = []string{"downlink", "uplink"}
		}
		other := ""
		for _, p := range paths {
			other, served[p] = cmp.Or(other, served[p]), at
		}
		if other != "" {
			k.bad(at+".role", fmt.Sprintf("%s and %s serve the same direction", other, at), `give one role = "downlink" and the other role = "uplink"`)
		}
		if r.Port != SimPort && r.Port != "" && k.c.HasRotator() && r.Port == k.c.Rotator.Port {
			k.bad(at+".port", fmt.Sprintf("%s and the rotator have the same port %s", at, quote(r.Port)), "give each its own")
		}
		for j, o := range k.c.Radio[:i] {
			if r.Port != SimPort && r.Port != "" && r.Port == o.Port {
				k.bad(at+".port", fmt.Sprintf("%s and radio[%d] have the same port %s", at, j+1, quote(r.Port)), "give each its own")
			}
		}
	}
}

func (k *check) transmit() {
	t := k.c.Transmit
	k.within("transmit.power_w", t.PowerW, 0, 1500, "W")
	k.within("transmit.gain_dbi", t.GainDBi, -10, 60, "dBi")
	k.within("transmit.feed_loss_db", t.FeedLossDB, 0, 30, "dB")
	k.within("transmit.max_eirp_w", t.MaxEIRPW, 0, 1e6, "W")
	k.within("transmit.min_elevation_deg", t.MinElevationDeg, 0, 90, "°")
	k.whole("transmit.max_over_s", t.MaxOverS, 1, 600, "s")
	k.within("transmit.duty_percent", t.DutyPercent, 1, 100, "%")
	k.whole("transmit.duty_window_s", t.DutyWindowS, 10, 3600, "s")
	k.whole("transmit.identify_every_s", t.IdentifyEveryS, 30, 600, "s")
	if t.Country != "" && !countryPattern.MatchString(t.Country) {
		k.bad("transmit.country", fmt.Sprintf("transmit.country is %s", quote(t.Country)), "give the two capital letters of ISO 3166, like GB")
	}
	for i, b := range t.BandsHz {
		at := fmt.Sprintf("transmit.bands_hz[%d]", i+1)
		if !(b[0] < b[1]) || b[0] < 100_000 || b[1] > 300_000_000_000 {
			k.bad(at, fmt.Sprintf("%s runs from %d to %d Hz", at, b[0], b[1]), "give [lowest, highest] in Hz, like [435000000, 438000000]")
		}
	}
	if !t.Enabled {
		return
	}
	need := func(missing bool, key, what, fix string) {
		if missing {
			k.bad(key, "transmit.enabled is true and "+what, fix)
		}
	}
	need(k.c.Station.Callsign == "", "transmit.enabled", "station.callsign is missing", "give the call sign of the licence, or set enabled = false")
	need(t.Country == "", "transmit.enabled", "transmit.country is missing", "give the country of the licence: its band table applies")
	need(len(t.BandsHz) == 0, "transmit.enabled", "transmit.bands_hz is empty", "list what the licence allows, in Hz")
	need(t.PowerW == 0, "transmit.enabled", "transmit.power_w is 0", "give the power at the radio, in watts")
	need(k.c.Access.ReadOnly, "transmit.enabled", "access.read_only is true", "a read-only station cannot transmit; set one of them to false")
	if _, ok := k.c.RadioFor("uplink"); !ok {
		need(true, "transmit.enabled", "no radio has the uplink", `give a [radio] with role = "both" or "uplink"`)
	}
}

func (k *check) satellites() {
	seen := map[int]bool{}
	for i, s := range k.c.Satellite {
		at := fmt.Sprintf("satellite[%d]", i+1)
		k.whole(at+".norad_id", s.NoradID, 1, 999_999_999, "")
		if seen[s.NoradID] {
			k.bad(at+".norad_id", fmt.Sprintf("satellite %d is listed twice", s.NoradID), "keep one entry")
		}
		seen[s.NoradID] = true
		k.text(at+".name", s.Name, 64)
		for _, f := range []struct {
			key string
			hz  int64
		}{{".downlink_hz", s.DownlinkHz}, {".uplink_hz", s.UplinkHz}} {
			if f.hz != 0 {
				k.within(at+f.key, float64(f.hz), 1e6, 3e11, "Hz")
			}
		}
		for _, m := range []struct{ key, mode string }{{".mode", s.Mode}, {".uplink_mode", s.UplinkMode}} {
			if m.mode != "" && !modePattern.MatchString(m.mode) {
				k.bad(at+m.key, fmt.Sprintf("%s is %s", at+m.key, quote(m.mode)), "write the mode in capitals, like FM, USB or CW")
			}
		}
		if s.ToneHz != 0 {
			k.within(at+".tone_hz", s.ToneHz, 60, 260, "Hz")
		}
		k.whole(at+".priority", s.Priority, 1, 9, "")
		k.within(at+".trim_hz", float64(s.TrimHz), -50_000, 50_000, "Hz")
	}
}

func (k *check) elements() {
	e := k.c.Elements
	for i, s := range e.Sources {
		at := fmt.Sprintf("elements.sources[%d]", i+1)
		u, err := url.Parse(s)
		switch {
		case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
			k.bad(at, at+" is not a web address", "give https://...; files belong in elements.files")
		case u.User != nil:
			k.bad(at, at+" has a user or a password in it", "use a source without one, or fetch by another program and list the file in elements.files")
		case u.Scheme == "http" && !loopback(u.Hostname()):
			k.warn(at, at+" is not encrypted: anybody on the way can change the orbits", "use https")
		}
	}
	for i, f := range e.Files {
		k.absolute(fmt.Sprintf("elements.files[%d]", i+1), f)
	}
	k.within("elements.refresh_h", e.RefreshH, 2, 168, "h")
	k.within("elements.max_age.leo_low_days", e.MaxAge.LEOLowDays, 0.1, 30, "days")
	k.within("elements.max_age.leo_days", e.MaxAge.LEODays, 0.1, 60, "days")
	k.within("elements.max_age.other_days", e.MaxAge.OtherDays, 0.1, 120, "days")
}

func (k *check) timing() {
	c, w, s := k.c.Clock, k.c.Weather, k.c.Schedule
	k.whole("clock.max_error_ms", c.MaxErrorMs, 10, 15000, "ms") // the kernel's own figure ends at 16 s
	k.whole("clock.warn_error_ms", c.WarnErrorMs, 1, 15000, "ms")
	if c.WarnErrorMs > c.MaxErrorMs {
		k.bad("clock.warn_error_ms", fmt.Sprintf("clock: warn_error_ms %d is over max_error_ms %d", c.WarnErrorMs, c.MaxErrorMs), "warn before refusing")
	}
	k.whole("clock.step_ms", c.StepMs, 20, 5000, "ms")
	k.choice("weather.source", w.Source, "none", "file")
	k.absolute("weather.file", w.File)
	if w.Source == "file" && w.File == "" {
		k.bad("weather.file", `weather.source is "file" and weather.file is missing`, "give the file that the wind sensor's program writes")
	}
	k.within("weather.wind_warn_mps", w.WindWarnMps, 1, 60, "m/s")
	k.within("weather.wind_stow_mps", w.WindStowMps, 1, 60, "m/s")
	k.within("weather.wind_clear_mps", w.WindClearMps, 0.5, 60, "m/s")
	if !(w.WindClearMps < w.WindWarnMps && w.WindWarnMps < w.WindStowMps) {
		k.bad("weather.wind_clear_mps", fmt.Sprintf("weather: wind_clear_mps %v, wind_warn_mps %v and wind_stow_mps %v do not rise", w.WindClearMps, w.WindWarnMps, w.WindStowMps), "give clear < warn < stow, or the antenna goes up and down with every gust")
	}
	k.whole("weather.clear_after_s", w.ClearAfterS, 0, 86400, "s")
	k.whole("weather.stale_s", w.StaleS, 5, 3600, "s")
	k.whole("schedule.prepass_lead_s", s.PrepassLeadS, 10, 1800, "s")
	k.whole("schedule.park_after_s", s.ParkAfterS, 0, 86400, "s")
	k.within("schedule.min_elevation_deg", s.MinElevationDeg, 0, 90, "°")
	k.whole("schedule.min_duration_s", s.MinDurationS, 0, 3600, "s")
	k.within("schedule.horizon_h", s.HorizonH, 1, 168, "h")
	k.whole("schedule.keep_days", s.KeepDays, 1, 3650, "days")
	sim := k.c.Simulation
	k.within("simulation.rate", sim.Rate, 1, 20, "")
	if (sim.Rate != 1 || !sim.Start.IsZero() || !sim.Anchor.IsZero()) && (k.c.HasRotator() || k.c.HasRadio()) && !k.c.Simulated() {
		k.bad("simulation", "[simulation] makes up the time, and a port of this station is real hardware", `remove [simulation], or set every port to "sim"`)
	}
	if !sim.Start.IsZero() && !(sim.Start.Year() >= 1960 && sim.Start.Year() < 2100) {
		k.bad("simulation.start", "simulation.start is outside the years 1960..2099", "give a time near the epoch of the elements")
	}
}

func (k *check) hub() {
	h := k.c.Hub
	k.text("hub.username", h.Username, 64)
	k.absolute("hub.password_file", h.PasswordFile)
	k.absolute("hub.ca_file", h.CAFile)
	k.absolute("hub.cert_file", h.CertFile)
	k.absolute("hub.key_file", h.KeyFile)
	if (h.CertFile == "") != (h.KeyFile == "") {
		k.bad("hub.cert_file", "hub has one of cert_file and key_file", "give both or neither")
	}
	k.whole("hub.quota_mib", h.QuotaMiB, 1, 65536, "MiB")
	k.whole("hub.reserve_mib", h.ReserveMiB, 1, 65536, "MiB")
	if h.Broker == "" {
		return
	}
	u, err := url.Parse(h.Broker)
	if err != nil || u.Hostname() == "" || u.Path != "" || u.RawQuery != "" {
		k.bad("hub.broker", "hub.broker is not a broker's address", "give ssl://host:8883, or tcp://host:1883 without encryption")
		return
	}
	if u.User != nil {
		k.bad("hub.broker", "hub.broker has a user or a password in it", "put them in username and password_file")
	}
	switch u.Scheme {
	case "ssl", "tls", "mqtts":
	case "tcp", "mqtt":
		if !loopback(u.Hostname()) {
			k.warn("hub.broker", "hub.broker is not encrypted: the password and every event can be read on the way", "use ssl://")
		}
		if h.CAFile != "" || h.CertFile != "" {
			k.bad("hub.broker", "hub has a certificate, and hub.broker is not encrypted", "use ssl://, or remove ca_file, cert_file and key_file")
		}
	default:
		k.bad("hub.broker", fmt.Sprintf("hub.broker has the scheme %s", quote(u.Scheme)), "give ssl://host:8883, or tcp://host:1883 without encryption")
	}
	if n, err := strconv.Atoi(u.Port()); u.Port() == "" || err != nil || n < 1 || n > 65535 {
		k.bad("hub.broker", "hub.broker has no port", "add :8883 for ssl, :1883 for tcp")
	}
}

func (k *check) access() {
	a := k.c.Access
	lists := []struct {
		key  string
		list []string
	}{{"observer", a.Observer}, {"operator", a.Operator}, {"supervisor", a.Supervisor}, {"agents", a.Agents}, {"no_stop", a.NoStop}}
	for _, l := range lists {
		for i, p := range l.list {
			k.principal(fmt.Sprintf("access.%s[%d]", l.key, i+1), p)
		}
	}
	for _, p := range a.Agents {
		if slices.Contains(a.Supervisor, p) {
			k.bad("access.agents", fmt.Sprintf("%s is both an agent and a supervisor", quote(p)), "agents never approve; take it out of supervisor")
		}
	}
	for _, p := range slices.Sorted(maps.Keys(a.ContractMajor)) {
		k.principal("access.contract_major."+p, p)
		k.whole("access.contract_major."+p, a.ContractMajor[p], 1, 99, "")
	}
	if a.ApprovalPINHash != "" {
		if _, _, _, err := parsePINHash(a.ApprovalPINHash); err != nil {
			k.bad("access.approval_pin_hash", "access.approval_pin_hash is not a hash", "make one with: gsd-mcp config pin; never write the PIN itself")
		}
	}
	b := a.Budgets
	k.whole("access.budgets.bookings_per_hour", b.BookingsPerHour, 1, 3600, "an hour")
	k.whole("access.budgets.moves_per_hour", b.MovesPerHour, 1, 3600, "an hour")
	k.whole("access.budgets.transmits_per_hour", b.TransmitsPerHour, 0, 3600, "an hour")
	k.whole("access.budgets.reads_per_second", b.ReadsPerSecond, 1, 100, "a second")
	k.whole("access.budgets.in_flight", b.InFlight, 1, 16, "")
}

func (k *check) principal(key, p string) {
	if !principalPattern.MatchString(p) {
		k.bad(key, fmt.Sprintf("%s is nobody: %s", show(key), quote(p)), "write uid:1000, user:ann or group:gsd-operate")
	}
}

// rotctl demands that nobody reaches the port from another computer: the
// protocol knows no passwords, and whoever reaches it turns the antenna.
func (k *check) rotctl() {
	r := k.c.Rotctl
	if r.Principal != "" {
		k.principal("rotctl.principal", r.Principal)
		if strings.HasPrefix(r.Principal, "group:") {
			k.bad("rotctl.principal", "rotctl.principal is a group: a client has to be somebody", "write user:ann or uid:1000")
		}
	}
	if r.Listen == "" || r.Unix() {
		return
	}
	const fix = `give "127.0.0.1:4533", "[::1]:4533" or the absolute path of a socket; from another computer: ssh -L 4533:127.0.0.1:4533`
	host, port, err := net.SplitHostPort(r.Listen)
	n, perr := strconv.Atoi(port)
	ip := net.ParseIP(host)
	switch {
	case err != nil, perr != nil, n < 1, n > 65535:
		k.bad("rotctl.listen", fmt.Sprintf("rotctl.listen %s is no address with a port", quote(r.Listen)), fix)
	case ip == nil:
		k.bad("rotctl.listen", fmt.Sprintf("rotctl.listen has the host %s: a name can come to mean another address", quote(host)), fix)
	case !ip.IsLoopback():
		k.bad("rotctl.listen", fmt.Sprintf("rotctl.listen %s can be reached from other computers, and its protocol knows no passwords: anybody there could turn the antenna", quote(r.Listen)), fix)
	}
	if r.Principal == "" {
		k.bad("rotctl.principal", "rotctl.listen is a TCP port and rotctl.principal is missing: over TCP the kernel does not tell who connects", "name the account whose role every local client gets, as in user:gpredict, or listen on a socket's path")
	}
}

func (k *check) rest() {
	c := k.c
	seen := map[string]bool{}
	for i, v := range c.MCP.Versions {
		k.choice(fmt.Sprintf("mcp.versions[%d]", i+1), v, Versions()...)
		if seen[v] {
			k.bad("mcp.versions", fmt.Sprintf("mcp.versions has %s twice", quote(v)), "keep one")
		}
		seen[v] = true
	}
	if len(c.MCP.Versions) == 0 {
		k.bad("mcp.versions", "mcp.versions is empty: nobody could talk to the station", "remove the line, or list at least one")
	}
	k.absolute("trace.file", c.Trace.File)
	k.whole("trace.max_mb", c.Trace.MaxMB, 1, 10000, "MB")
	k.choice("log.level", c.Log.Level, "trace", "debug", "info", "warn", "error")
	k.choice("log.format", c.Log.Format, "text", "json")
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
