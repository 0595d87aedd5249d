# Writes the reference look angles of one pass, made with Skyfield and not by
# this program. Debian: python3-skyfield. UT1 = UTC, no polar motion, no
# refraction, WGS-72: as in ../orbits/README.md.
#   python3 reference.py ../orbits/tle/iss_zarya.tle > iss_london.csv
import sys
from skyfield.api import EarthSatellite, load, wgs84

lines = [l.rstrip() for l in open(sys.argv[1]) if l[:2] in ("1 ", "2 ")]
ts = load.timescale(builtin=True, delta_t=69.184)
sat = EarthSatellite(lines[0], lines[1], "ISS", ts)
site = wgs84.latlon(51.5074, -0.1278, 25.0)
print("utc,azimuth_deg,elevation_deg,range_km")
for s in range(0, 11 * 60):
    t = ts.utc(2026, 8, 13, 11, 41, s)
    alt, az, dist = (sat - site).at(t).altaz()
    print("2026-08-13T11:%02d:%02dZ,%.5f,%.5f,%.3f" % (41 + s // 60, s % 60, az.degrees, alt.degrees, dist.km))
