import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { endpoint } from '../../../support/endpoint.js';
import { runGateway } from '../../../support/gateway.js';

const health = suite('cli/commands/utils/health');

const plain = await endpoint();
const secure = await endpoint({ tls: true });
health.after(async () => {
  await plain.close();
  await secure.close();
});
const portOf = (url: string) => Number(new URL(url).port);

/** Asks with a gateway.json in the working folder. */
const ask = (line: readonly string[], config: object, env = {}) =>
  runGateway(['utils', 'health', '--', ...line], { config, env });

health('flags, variables and the file give the port of the process', async () => {
  const port = portOf(plain.url);
  for (const [line, file, env] of [
    [['agent', '--port', `${port}`], { server: { http: { agent_port: 1 } } }, {}],
    [['agent'], { server: { http: { agent_port: 1 } } }, { AGENT_PORT: `${port}` }],
    [['agent'], { server: { http: { agent_port: port, port: 1 } } }, {}],
    [['s'], { host: 'gateway.example.com', root_path: '/hooks', server: { http: { port } } }, {}],
    [['--log-level', 'warn', 'server'], { server: { http: { port, bind: '127.0.0.1' } } }, {}],
  ] as const) {
    const { code, stdout, stderr } = await ask(line, file, env);
    assert.is(code, 0, `${line}: ${stdout}${stderr}`);
  }
  assert.ok(plain.requests.every(({ url }) => url === '/healthz'));
});

health('a server with TLS is asked with TLS, and an agent is not', async () => {
  const http = { ssl: true, ssl_cert_file: 'tls.crt', ssl_key_file: 'tls.key' };
  const server = await ask(['server'], { server: { http: { ...http, port: portOf(secure.url) } } });
  assert.is(server.code, 0, server.stdout + server.stderr);
  const file = { server: { http: { ...http, agent_port: portOf(plain.url) } } };
  const agent = await ask(['agent'], file);
  assert.is(agent.code, 0, agent.stdout + agent.stderr);
});

health('only the address in `bind` is asked', async () => {
  const file = { server: { http: { bind: '127.0.0.99', agent_port: portOf(plain.url) } } };
  const { code, stdout } = await ask(['agent'], file);
  assert.is(code, 1);
  assert.match(stdout, /^http:\/\/127\.0\.0\.99:\d+\/healthz: .*ECONNREFUSED/);
});

health('another answer than 200 is a failure', async () => {
  plain.answer({ status: 503 });
  const { code, stdout } = await ask(['agent', '--port', `${portOf(plain.url)}`], {});
  plain.answer({});
  assert.is(code, 1);
  assert.match(stdout, /: 503$/m);
});

health('a line of another command is refused without its secrets', async () => {
  const { code, stderr } = await ask(['migrate', 'up', '--db-password', 'hidden'], {});
  assert.is(code, 2);
  assert.match(stderr, 'neither that of a server nor of an agent');
  assert.not.match(stderr, 'hidden');
});

health.run();
