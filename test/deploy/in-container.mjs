// Runs `gateway` in a container like the command itself: `node in-container.mjs agent --port 5009`.
// IN_CONTAINER says how. `gateway.json` of the working folder is that of the container.
import { spawn } from 'node:child_process';
import fs from 'node:fs';

const { command, image } = JSON.parse(process.env.IN_CONTAINER);
const args = process.argv.slice(2);
const config = JSON.parse(fs.readFileSync('gateway.json', 'utf8'));
const port = args.includes('--port') ? args[args.indexOf('--port') + 1] : config.server.http.port;
const name = `${args[0]}-${port}`;
fs.chmodSync('.', 0o755);

const podman = (...more) => {
  const [program, ...rest] = [...command, ...more];
  return spawn(program, rest, { stdio: 'inherit' });
};
const container = podman(
  'run',
  `--name=${name}`,
  '--network=host',
  '--read-only',
  '--tmpfs=/tmp',
  '--cap-drop=all',
  '--security-opt=no-new-privileges',
  `--volume=${process.cwd()}/gateway.json:/etc/gateway/gateway.json:ro`,
  `--env=${args[0] === 'agent' ? 'AGENT_PORT' : 'PORT'}=${port}`,
  image,
  ...args,
);
process.on('SIGTERM', () => podman('kill', '--signal=TERM', name));
container.on('exit', (code) => process.exit(code ?? 1));
