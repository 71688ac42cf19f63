import type { Endpoint, Project } from '@gateway/client';
import {
  findIn,
  Flags,
  GatewayCommand,
  idOf,
  inEach,
  jsonFlag,
  projectFlag,
  projectIdOf,
  projectsOf,
  READS,
  valueFlag,
  wrongUse,
} from '../../app/gateway-command.js';
import { escapeLine } from '../../output/escape-terminal.js';

export default class UtilsCircuitBreakers extends GatewayCommand {
  static override description =
    'While a breaker is open, nothing is sent to its endpoint, and deliveries wait without using attempts. At UNTIL, one delivery ' +
    'is tried; if it succeeds, the breaker closes and the others are sent. --reset closes the breaker now, for an endpoint that ' +
    'was just fixed.';
  static override examples = [
    'gateway utils circuit-breakers',
    'gateway utils circuit-breakers --endpoint-id 019ab3c4-5d6e-7f70-9123-456789abcdef --json',
    'gateway utils circuit-breakers --endpoint-id 019ab3c4-5d6e-7f70-9123-456789abcdef --reset',
  ];
  static override flags = {
    ...jsonFlag,
    ...projectFlag,
    'endpoint-id': valueFlag('<id>', 'Show the breaker of this endpoint, even if it is closed.'),
    reset: Flags.boolean({
      summary: 'Close the breaker of --endpoint-id and send the waiting deliveries.',
    }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(UtilsCircuitBreakers);
    const { reset } = flags;
    const endpointId = idOf('--endpoint-id', flags['endpoint-id']);
    const projectId = projectIdOf(flags);
    if (reset && endpointId === undefined)
      throw wrongUse(
        '--reset needs an endpoint',
        'add --endpoint-id; without --reset, the command lists the breakers that are not closed, with the ids of their endpoints',
      );
    const { client, kv } = this.resolve(flags).config;
    if (client.url === undefined && kv.type === 'in-memory')
      throw wrongUse(
        'kv.type is in-memory, so the breakers are only in the memory of the agent',
        'name the server of that process with --url, or set kv.type to redis',
      );
    const shown = await this.api(flags, async (api) => {
      const found: ReturnType<typeof recordOf>[] = [];
      if (endpointId !== undefined) {
        const it = await findIn(api, projectId, ({ endpoints }) => endpoints.get(endpointId));
        const { endpoints } = it.api;
        const endpoint = reset ? await endpoints.resetCircuitBreaker(endpointId) : it.found;
        return [recordOf(endpoint, it.project)];
      }
      await inEach(
        api,
        await projectsOf(api, projectId),
        async ({ endpoints }, project) => {
          const states = ['open', 'half_open'] as const;
          for await (const it of endpoints.list({ circuitBreaker: states, perPage: 200 }))
            found.push(recordOf(it, project));
        },
        READS,
      );
      return found;
    });
    this.logTable(shown, flags, [
      ['PROJECT', ({ project_name: name }) => escapeLine(name)],
      ['ENDPOINT', ({ endpoint_name: name }) => escapeLine(name)],
      ['ID', ({ endpoint_id: id }) => id],
      ['STATE', ({ state }) => state],
      ['SINCE', ({ since }) => since ?? '-'],
      ['UNTIL', ({ until }) => until ?? '-'],
      ['FAILED', ({ failures, requests }) => `${failures} of ${requests}`],
    ]);
    if (reset)
      this.logToStderr(
        'The breaker is closed. Agents notice within two seconds and send the waiting deliveries.',
      );
    else if (shown.length === 0) this.logToStderr('The breakers of all endpoints are closed.');
  }
}

function recordOf(
  { uid, name, circuit_breaker }: Pick<Endpoint, 'uid' | 'name' | 'circuit_breaker'>,
  project: Project,
) {
  return {
    ...{ endpoint_id: uid, endpoint_name: name },
    ...{ project_id: project.uid, project_name: project.name },
    ...(circuit_breaker ?? UNKNOWN),
  };
}

const UNKNOWN = { state: 'unknown', since: null, until: null, requests: 0, failures: 0 };
