import { createSocket } from 'node:dgram';
import { once } from 'node:events';

/**
 * Opens the rig: each start of the plugin gets a separate agent, which exists until the rig is
 * closed.
 *
 * @returns {import('@gateway/plugin-conformance').MetricsRig}
 */
export default function open() {
  const agents = new Map();
  let reads = 0;
  return {
    async settings() {
      const socket = createSocket('udp4').bind(0, '127.0.0.1');
      await once(socket, 'listening');
      const { port } = socket.address();
      const lines = [];
      socket.on('message', (datagram) => lines.push(...datagram.toString().split('\n')));
      agents.set(port, { socket, lines });
      return { host: '127.0.0.1', port, push_seconds: 10 };
    },
    async read(metrics, { port }, series) {
      const { socket, lines } = agents.get(port);
      await metrics.push();
      // Arrives after the data of the push.
      const mark = `mark:${++reads}`;
      socket.send(mark, port, '127.0.0.1');
      while (!lines.includes(mark)) await once(socket, 'message');
      return samplesOf(lines, series);
    },
    carried: (value) => value.replaceAll(/[|,#\n]/g, '_'),
    async close() {
      for (const { socket } of agents.values()) socket.close();
    },
  };
}

/**
 * Aggregates as an agent does: sums of counters, last values of gauges, and histogram values in the
 * table's buckets.
 */
function samplesOf(lines, series) {
  const samples = new Map();
  for (const line of lines.filter((it) => !it.startsWith('mark:'))) {
    const [, name, value, kind, tags] = /^(\w+):(\S+)\|([cgh])(?:\|#([^]*))?$/.exec(line) ?? [];
    const given = (tags?.split(',') ?? []).map((tag) => [
      tag.slice(0, tag.indexOf(':')),
      tag.slice(tag.indexOf(':') + 1),
    ]);
    const add = (suffix, extra, amount) => {
      const labels = { ...Object.fromEntries(given), ...extra };
      const key = name + suffix + JSON.stringify(labels);
      const before = kind === 'g' ? 0 : (samples.get(key)?.value ?? 0);
      samples.set(key, { name: name + suffix, labels, value: before + amount });
    };
    if (kind !== 'h') {
      add('', {}, Number(value));
      continue;
    }
    for (const le of [...series[name].buckets, '+Inf'])
      add('_bucket', { le: String(le) }, le === '+Inf' || Number(value) <= le ? 1 : 0);
    add('_sum', {}, Number(value));
    add('_count', {}, 1);
  }
  return [...samples.values()];
}
