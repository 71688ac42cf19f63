import type { Endpoint, Project } from '@gateway/client';
import {
  command,
  findIn,
  idFlag,
  inEach,
  jsonFlag,
  projectFlag,
  projectsOf,
  READS,
  switchFlag,
  wrongUse,
} from '../../app/gateway-command.js';

export default command({
  description:
    'While a breaker is open, nothing is sent to its endpoint, and deliveries wait without using attempts. At UNTIL, one delivery ' +
    'is tried; if it succeeds, the breaker closes and the others are sent. --reset closes the breaker now, for an endpoint that ' +
    'was just fixed.',
  examples: [
    'gateway utils circuit-breakers',
    'gateway utils circuit-breakers --endpoint-id 019ab3c4-5d6e-7f70-9123-456789abcdef --json',
    'gateway utils circuit-breakers --endpoint-id 019ab3c4-5d6e-7f70-9123-456789abcdef --reset',
  ],
  flags: {
    ...jsonFlag,
    ...projectFlag,
    'endpoint-id': idFlag('Show the breaker of this endpoint, even if it is closed.'),
    reset: switchFlag('Close the breaker of --endpoint-id and send the waiting deliveries.'),
  },
  async run({ flags, api, config, note, table }) {
    const { 'endpoint-id': endpointId, reset } = flags;
    if (reset && endpointId === undefined)
      throw wrongUse(
        '--reset needs an endpoint',
        'add --endpoint-id; without --reset, the command lists the breakers that are not closed, with the ids of their endpoints',
      );
    const { client, kv } = config();
    if (client.url === undefined && kv.type === 'in-memory')
      throw wrongUse(
        'kv.type is in-memory, so the breakers are only in the memory of the agent',
        'name the server of that process with --url, or set kv.type to redis',
      );
    const shown: ReturnType<typeof recordOf>[] = [];
    await api(async (all) => {
      if (endpointId !== undefined) {
        const it = await findIn(all, flags, ({ endpoints }) => endpoints.get(endpointId));
        const { endpoints } = it.api;
        const endpoint = reset ? await endpoints.resetCircuitBreaker(endpointId) : it.found;
        shown.push(recordOf(endpoint, it.project));
        return;
      }
      await inEach(
        all,
        await projectsOf(all, flags),
        async ({ endpoints }, project) => {
          const states = ['open', 'half_open'] as const;
          for await (const it of endpoints.list({ circuitBreaker: states, perPage: 200 }))
            shown.push(recordOf(it, project));
        },
        READS,
      );
    });
    table(shown, [
      ['PROJECT', 'project_name'],
      ['ENDPOINT', 'endpoint_name'],
      ['ID', 'endpoint_id'],
      ['STATE', 'state'],
      ['SINCE', 'since'],
      ['UNTIL', 'until'],
      ['FAILED', ({ failures, requests }) => `${failures} of ${requests}`],
    ]);
    if (reset)
      note(
        'The breaker is closed. Agents notice within two seconds and send the waiting deliveries.',
      );
    else if (shown.length === 0) note('The breakers of all endpoints are closed.');
  },
});

function recordOf(
  { uid, name, circuit_breaker }: Pick<Endpoint, 'uid' | 'name' | 'circuit_breaker'>,
  project: Project,
) {
  return {
    endpoint_id: uid,
    endpoint_name: name,
    project_id: project.uid,
    project_name: project.name,
    ...(circuit_breaker ?? UNKNOWN),
  };
}

const UNKNOWN = { state: 'unknown', since: null, until: null, requests: 0, failures: 0 };
