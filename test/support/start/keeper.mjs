// @ts-check
// Outlives the test process that started servers, and cleans up after it: a killed test would
// otherwise leave a Postgres behind. The owner writes one JSON line per change to standard input:
// {"keep":{"pid","signal"}}, {"forget":pid}, {"folder":path}, {"leave":path}. When the input ends,
// because the owner has ended for any reason, the kept processes are signalled by pid and the
// folders are deleted.
import fs from 'node:fs';
import readline from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

/** @type {Map<number, NodeJS.Signals>} */
const kept = new Map();
/** @type {Set<string>} */
const folders = new Set();

for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP']))
  process.on(signal, () => {});

for await (const line of readline.createInterface({ input: process.stdin })) {
  const { keep, forget, folder, leave } = JSON.parse(line);
  if (keep) kept.set(keep.pid, keep.signal);
  if (forget) kept.delete(forget);
  if (folder) folders.add(folder);
  if (leave) folders.delete(leave);
}

for (const [pid, signal] of kept) send(pid, signal);
const deadline = Date.now() + 15_000;
while ([...kept.keys()].some(lives) && Date.now() < deadline) await sleep(50);
for (const pid of kept.keys()) send(pid, 'SIGKILL');
if (kept.size > 0) await sleep(100);
for (const folder of folders) fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5 });

/** @param {number} pid */
function lives(pid) {
  try {
    // A zombie still accepts signal 0.
    if (/^State:\s+Z/m.test(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))) return false;
  } catch {
    if (fs.existsSync('/proc/self')) return false;
  }
  return send(pid, 0);
}

/**
 * @param {number} pid
 * @param {NodeJS.Signals | 0} signal
 */
function send(pid, signal) {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}
