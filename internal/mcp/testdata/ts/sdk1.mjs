// An operator's day with @modelcontextprotocol/sdk 1.x (handshake only).
// usage: node sdk1.mjs command args...
import assert from 'node:assert/strict';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';

const [command, ...args] = process.argv.slice(2);
const c = new Client({ name: 'ts1', version: '1' });
await c.connect(new StdioClientTransport({ command, args, env: process.env }));
assert.equal(c.getServerVersion().name, 'gsd-mcp');
const tools = (await c.listTools()).tools.map(t => t.name);
assert(tools.includes('point_antenna') && tools.includes('secret_move'), String(tools));

const ok = await c.callTool({ name: 'point_antenna', arguments: { azimuth_deg: 10, elevation_deg: 20 } });
assert(!ok.isError && ok.content[0].text.startsWith('pointing to az 10.0'));
const no = await c.callTool({ name: 'point_antenna', arguments: { azimuth_deg: 10, elevation_deg: 2 } });
assert(no.isError && no.content.length === 2 && JSON.parse(no.content[1].text).refused);
assert.equal((await c.callTool({ name: 'station_status', arguments: {} })).structuredContent.azimuth_deg, 12.5);
await assert.rejects(c.callTool({ name: 'predict_passes', arguments: { satellite: 'ISS', hours: 200 } }), e => e.code === -32602 && e.message.includes('<= 72'));
await assert.rejects(c.readResource({ uri: 'station://nope' }), e => e.code === -32002);
assert.equal((await c.readResource({ uri: 'station://satellites/25544' })).contents[0].text, 'ISS (ZARYA)');

let reports = 0;
await c.callTool({ name: 'scan_noise', arguments: { seconds: 0.6 } }, undefined, { onprogress: () => reports++ });
assert(reports >= 2, `${reports} progress reports`);
const stop = new AbortController();
setTimeout(() => stop.abort(), 100);
await assert.rejects(c.callTool({ name: 'scan_noise', arguments: { seconds: 30 } }, undefined, { signal: stop.signal }));

const updated = new Promise(done => c.setNotificationHandler(ResourceUpdatedNotificationSchema, n => done(n.params.uri)));
await c.subscribeResource({ uri: 'station://health' });
assert.equal(await updated, 'station://health');
const filled = await c.complete({ ref: { type: 'ref/prompt', name: 'plan_passes' }, argument: { name: 'satellite', value: 'n' } });
assert.deepEqual(filled.completion.values, ['NOAA 19']);
assert.equal((await c.getPrompt({ name: 'plan_passes', arguments: { satellite: 'ISS' } })).messages.length, 1);
await c.close();
console.log('ok');
