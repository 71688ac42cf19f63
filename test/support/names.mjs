// @ts-check
// Loaded into a process before all else (`NODE_OPTIONS=--import=…`): the names that TEST_NAMES lists resolve as it says, as if a name server of the
// test's own answered for them. `{ "name": [["127.0.0.1"], ["127.0.0.2", "::1"]] }`: the addresses of each answer in turn, from the first again after the last.
import dns from 'node:dns';
import { syncBuiltinESMExports } from 'node:module';
import { isIP } from 'node:net';

/** @type {Record<string, string[][]>} */
const names = JSON.parse(process.env['TEST_NAMES'] ?? '{}');
/** @type {Map<string, number>} */
const asked = new Map();
const real = dns.lookup;

/** @type {(hostname: string, options: unknown, callback: (error: null, address: unknown, family?: number) => void) => void} */
function lookup(hostname, options, callback) {
  const answers = Object.hasOwn(names, hostname) ? names[hostname] : undefined;
  if (!answers) {
    Reflect.apply(real, dns, [hostname, options, callback]);
    return;
  }
  const turn = asked.get(hostname) ?? 0;
  asked.set(hostname, turn + 1);
  const found = (answers[turn % answers.length] ?? []).map((address) => ({ address, family: isIP(address) }));
  const all = typeof options === 'object' && options !== null && 'all' in options && options.all === true;
  setImmediate(() => (all ? callback(null, found) : callback(null, found[0]?.address, found[0]?.family)));
}

Object.assign(dns, { lookup });
syncBuiltinESMExports();
