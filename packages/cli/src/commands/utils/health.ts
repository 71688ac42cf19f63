import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import { linksOf, resolveConfig } from '@gateway/core/config';
import { namedCommand } from '../../app/command-index.js';
import { GatewayCommand, wrongUse } from '../../app/gateway-command.js';
import { root, useInstallation } from '../../app/installation.js';
import { commandFirst, settingFlags } from '../../app/setting-flags.js';

const TIMEOUT_MS = 10_000;

export default class UtilsHealth extends GatewayCommand {
  static override description =
    'Requests /healthz of the server or agent whose command line follows --, or is that of process 1, as in a container. Its flags, the ' +
    'environment and the configuration file give port, address and TLS. Exits with 1 if the answer is not 200.';
  static override examples = [
    'gateway utils health',
    'gateway utils health -- agent --port 6000 --config ./production.json',
  ];
  static override strict = false;

  async run(): Promise<void> {
    const { id, config } = await this.observed();
    const isAgent = id === 'agent';
    const { port, agent_port: agentPort, ssl } = config.server.http;
    // Without the public name and path, which may lead elsewhere.
    const { host: _, ...own } = config;
    const listener = { ...config.server.http, ssl: ssl && !isAgent };
    const { url } = linksOf({ ...own, root_path: '', server: { ...own.server, http: listener } });
    const place = `${url(isAgent ? agentPort : port)}/healthz`;
    const answer = await statusOf(place).catch((error: Error) => error.message);
    this.log(`${place}: ${answer}`);
    if (answer !== 200) this.exit(1);
  }

  private async observed() {
    const given = this.argv.indexOf('--');
    const line = given === -1 ? ofFirstProcess() : this.argv.slice(given + 1);
    const at = line.findIndex((it, i) => it === '--config' && line[i + 1] !== undefined);
    const file = at === -1 ? line.find((it) => it.startsWith('--config='))?.slice(9) : line[at + 1];
    const { rows } = useInstallation({ root: root(), file });
    const { id, rest } = namedCommand(commandFirst(line, rows));
    if (id !== 'server' && id !== 'agent')
      throw wrongUse(
        `${given === -1 ? 'process 1' : 'the command line after --'} is neither that of a server nor of an agent`,
        'give the command line of one, as in `gateway utils health -- agent --port 6000`',
      );
    const { flags } = await this.parse({ flags: settingFlags(id, rows) }, [...rest]);
    return { id, ...resolveConfig({ command: id, flags, file, rows }) };
  }
}

/** The words after `gateway`. */
function ofFirstProcess(): string[] {
  try {
    const words = readFileSync('/proc/1/cmdline', 'utf8').split('\0').slice(0, -1);
    const at = words.findIndex((it) => /(^|\/)gateway(\.js)?$/.test(it));
    return at === -1 ? [] : words.slice(at + 1);
  } catch {
    return [];
  }
}

function statusOf(url: string): Promise<number | undefined> {
  // A certificate is for the public name.
  const options = { rejectUnauthorized: false, timeout: TIMEOUT_MS };
  return new Promise((resolve, reject) => {
    const request = (url.startsWith('https:') ? https : http).get(url, options, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    request.on('timeout', () => request.destroy(new Error(`no answer in ${TIMEOUT_MS / 1000} s`)));
    request.on('error', reject);
  });
}
