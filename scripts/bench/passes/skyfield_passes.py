"""Passes with Skyfield's find_events. Arguments: TLE file, start, hours."""
import datetime
import sys

from skyfield.api import EarthSatellite, load, wgs84

file, start, hours = sys.argv[1:4]
ts = load.timescale(delta_t=69.184)
begin = datetime.datetime.fromisoformat(start.replace("Z", "+00:00"))
t0, t1 = ts.from_datetime(begin), ts.from_datetime(begin + datetime.timedelta(hours=float(hours)))
site = wgs84.latlon(51.5074, -0.1278, 25)
with open(file) as f:
    lines = f.read().splitlines()
rises = 0
for i in range(0, len(lines) - 2, 3):
    sat = EarthSatellite(lines[i + 1].rstrip(), lines[i + 2].rstrip(), lines[i].strip(), ts)
    times, events = sat.find_events(site, t0, t1, altitude_degrees=0.0)
    for t, e in zip(times, events):
        if e == 0:
            rises += 1
        print(sat.name, t.utc_iso(), e)
print(rises, file=sys.stderr)
