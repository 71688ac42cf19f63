// @ts-check
// Preloaded into a process (`NODE_OPTIONS=--import=…`): resolves the names in TEST_NAMES like a
// name server of the test. `{ "name": [["127.0.0.1"], ["127.0.0.2", "127.0.0.3"]] }`: the IPv4
// addresses of each answer, in rotation.
import dns from 'node:dns';

/** @type {Record<string, string[][]>} */
const names = JSON.parse(process.env['TEST_NAMES'] ?? '{}');
/** @type {Map<string, number>} */
const asked = new Map();
const real = dns.Resolver.prototype.resolve4;

/**
 * @type {(this: dns.Resolver, name: string, callback: (error: Error | null, addresses?: string[])
 * => void) => void}
 */
function resolve4(name, callback) {
  const answers = Object.hasOwn(names, name) ? names[name] : undefined;
  if (!answers) {
    Reflect.apply(real, this, [name, callback]);
    return;
  }
  const turn = asked.get(name) ?? 0;
  asked.set(name, turn + 1);
  setImmediate(() => callback(null, answers[turn % answers.length]));
}

const { resolve6 } = dns.Resolver.prototype;

/** @type {typeof resolve4} */
function noAddress(name, callback) {
  if (Object.hasOwn(names, name))
    setImmediate(() => callback(Object.assign(new Error(name), { code: 'ENODATA' })));
  else Reflect.apply(resolve6, this, [name, callback]);
}

Object.assign(dns.Resolver.prototype, { resolve4, resolve6: noAddress });
