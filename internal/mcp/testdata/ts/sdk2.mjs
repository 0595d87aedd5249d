// An operator's day with @modelcontextprotocol/client 2.x.
// usage: node sdk2.mjs default|auto|modern command args...
import assert from 'node:assert/strict';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const [mode, command, ...args] = process.argv.slice(2);
const pick = mode === 'modern' ? { pin: '2026-07-28' } : mode;
const c = new Client({ name: 'ts2', version: '1' }, mode === 'default' ? undefined : { versionNegotiation: { mode: pick } });
await c.connect(new StdioClientTransport({ command, args, env: process.env }));
assert.equal(c.getNegotiatedProtocolVersion(), mode === 'default' ? '2025-11-25' : '2026-07-28');
const tools = (await c.listTools()).tools.map(t => t.name);
assert(tools.includes('point_antenna'), String(tools));

const ok = await c.callTool({ name: 'point_antenna', arguments: { azimuth_deg: 10, elevation_deg: 20 } });
assert(!ok.isError && ok.content[0].text.startsWith('pointing to az 10.0'));
const no = await c.callTool({ name: 'point_antenna', arguments: { azimuth_deg: 10, elevation_deg: 2 } });
assert(no.isError && no.content.length === 2);
assert.equal((await c.callTool({ name: 'station_status', arguments: {} })).structuredContent.azimuth_deg, 12.5);
await assert.rejects(c.callTool({ name: 'predict_passes', arguments: { satellite: 'ISS', hours: 200 } }), e => e.code === -32602 && e.message.includes('<= 72'));
await assert.rejects(c.readResource({ uri: 'station://nope' }));
assert.equal((await c.readResource({ uri: 'station://satellites/25544' })).contents[0].text, 'ISS (ZARYA)');
await c.close();
console.log('ok');
