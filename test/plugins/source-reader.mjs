// @ts-check
// Runs a source plugin in a separate process, for tests that kill it or check that it ends: node
// source-reader.mjs PACKAGE '{"connection":{…},"handle":"accept"|"never","stopAfter":1}'
const [name = '', json = '{}'] = process.argv.slice(2);
const {
  connection,
  handle = 'accept',
  stopAfter = Infinity,
  clientId = 'gateway-reader',
} = JSON.parse(json);
/** @type {{ default: import('@gateway/plugin').SourcePlugin<unknown> }} */
const { default: plugin } = await import(name);
const abort = new AbortController();
const log = { debug() {}, info() {}, warn() {}, error() {} };
let count = 0;

await plugin.run(
  connection,
  () => {
    console.log('message');
    if (++count >= stopAfter) abort.abort();
    return handle === 'never' ? new Promise(() => {}) : Promise.resolve('accepted');
  },
  {
    sourceId: 'source-1',
    signal: abort.signal,
    window: 1000,
    workers: 1,
    clientId: clientId.replace('PID', process.pid),
    log,
    report: (state) => console.log(state),
  },
);
