import { createSocket } from 'node:dgram';

const TYPES = { counter: 'c', gauge: 'g', histogram: 'h' };
/** Fits into an Ethernet frame. */
const DATAGRAM_BYTES = 1400;

/**
 * @type {import('@gateway/plugin').MetricsPlugin<{ host: string, port: number, push_seconds: number
 * }>}
 */
export default {
  async start(series, { host, port, push_seconds }, { collect, log }) {
    const socket = createSocket('udp4');
    socket
      .unref()
      .on('error', (error) => log.warn({ err: error }, 'The socket to the StatsD agent failed.'));
    /** Counters since the last push, and gauges, by name and line without the value. */
    const values = new Map(Object.keys(series).map((name) => [name, new Map()]));
    /** Histogram values since the last push. */
    let observed = [];
    let isClosed = false;

    const known = (name, type) => {
      if (series[name]?.type !== type)
        throw new Error(`${name} is no ${type} of the table of series`);
      return values.get(name);
    };
    const sendAll = async () => {
      const lines = observed.splice(0);
      for (const [name, all] of values) {
        for (const [tags, value] of all)
          lines.push(`${name}:${value}|${TYPES[series[name].type]}${tags}`);
        if (series[name].type === 'counter') all.clear();
      }
      for (const datagram of datagramsOf(lines))
        await new Promise((resolve) => socket.send(datagram, port, host, resolve));
    };
    let sending = Promise.resolve();
    const send = () => (sending = sending.then(sendAll));
    const push = async () => {
      if (isClosed) return;
      await collect();
      await send();
    };
    const timer = setInterval(() => void push(), push_seconds * 1000).unref();
    return {
      push,
      add(name, labels, amount) {
        const counter = known(name, 'counter');
        const tags = tagsOf(labels);
        counter.set(tags, (counter.get(tags) ?? 0) + amount);
      },
      set: (name, labels, value) => void known(name, 'gauge').set(tagsOf(labels), value),
      observe(name, labels, value) {
        known(name, 'histogram');
        // Sends early when there are more observations than fit into a few datagrams.
        if (observed.push(`${name}:${value}|h${tagsOf(labels)}`) > 100) void send();
      },
      clear: (name) => values.get(name)?.clear(),
      expose: async () => ({
        contentType: 'text/plain; charset=utf-8',
        body: `# pushed to StatsD at ${host}:${port}\n`,
      }),
      async close() {
        if (isClosed) return;
        isClosed = true;
        clearInterval(timer);
        await send();
        socket.close();
      },
    };
  },
};

/** `|#project:p1,source:s1`. The protocol has no escapes, so delimiters become underscores. */
function tagsOf(labels) {
  const tags = Object.entries(labels).map(
    ([name, value]) => `${name}:${value.replaceAll(/[|,#\n]/g, '_')}`,
  );
  return tags.length > 0 ? `|#${tags.join(',')}` : '';
}

function datagramsOf(lines) {
  const datagrams = [];
  for (const line of lines) {
    const longer = `${datagrams.at(-1)}\n${line}`;
    if (datagrams.length > 0 && Buffer.byteLength(longer) <= DATAGRAM_BYTES)
      datagrams[datagrams.length - 1] = longer;
    else datagrams.push(line);
  }
  return datagrams;
}
