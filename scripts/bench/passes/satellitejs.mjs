// Passes with satellite.js: elevation every 60 s, crossings bisected to 1 ms,
// the highest point by ternary search. Arguments: TLE file, start, hours.
import { readFileSync } from 'node:fs';
import * as sat from 'satellite.js';

const [file, start, hours] = process.argv.slice(2);
const lines = readFileSync(file, 'ascii').split('\n');
const site = { latitude: 51.5074 * Math.PI / 180, longitude: -0.1278 * Math.PI / 180, height: 0.025 };
const from = Date.parse(start), to = from + hours * 3600e3;

function elevation(rec, ms) {
  const t = new Date(ms);
  const state = sat.propagate(rec, t);
  if (!state || !state.position) return -Math.PI / 2;
  return sat.ecfToLookAngles(site, sat.eciToEcf(state.position, sat.gstime(t))).elevation;
}

function bisect(rec, a, b, rising) {
  while (b - a > 1) {
    const m = (a + b) / 2;
    if ((elevation(rec, m) < 0) === rising) a = m; else b = m;
  }
  return (a + b) / 2;
}

function highest(rec, a, b) {
  while (b - a > 100) {
    const x = a + (b - a) / 3, y = b - (b - a) / 3;
    if (elevation(rec, x) > elevation(rec, y)) b = y; else a = x;
  }
  return (a + b) / 2;
}

let count = 0;
const out = [];
for (let i = 0; i + 2 < lines.length; i += 3) {
  const rec = sat.twoline2satrec(lines[i + 1].trimEnd(), lines[i + 2].trimEnd());
  let before = elevation(rec, from), rise = before >= 0 ? from : null;
  for (let t = from + 60e3; t <= to; t += 60e3) {
    const now = elevation(rec, t);
    if (before < 0 && now >= 0) rise = bisect(rec, t - 60e3, t, true);
    if (before >= 0 && now < 0) {
      const set = bisect(rec, t - 60e3, t, false), top = highest(rec, rise, set);
      out.push(`${lines[i].trim()},${new Date(rise).toISOString()},${new Date(top).toISOString()},${elevation(rec, top)},${new Date(set).toISOString()}`);
      count++;
      rise = null;
    }
    before = now;
  }
  if (rise !== null) count++;
}
process.stdout.write(out.join('\n') + '\n');
process.stderr.write(`${count}\n`);
