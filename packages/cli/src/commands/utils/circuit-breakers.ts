import * as Flags from '@oclif/core/flags';
import type { Config } from '@gateway/core/config';
import { GatewayError } from '@gateway/core/errors';
import { isId } from '@gateway/core/events';
import type { Database } from '@gateway/store/postgres';
import { withDatabase } from '../../app/database.js';
import { wrongUse } from '../../app/flag-values.js';
import { GatewayCommand, jsonFlag } from '../../app/gateway-command.js';
import { escapeLine } from '../../output/escape-terminal.js';
import { answerTable, type Column } from '../../output/table.js';

const columns: readonly Column<Awaited<ReturnType<typeof readShown>>[number]>[] = [
  ['PROJECT', ({ project_name: name }) => escapeLine(name)],
  ['ENDPOINT', ({ endpoint_name: name }) => escapeLine(name)],
  ['ID', ({ endpoint_id: id }) => id],
  ['STATE', ({ state }) => state],
  ['SINCE', ({ since }) => since?.toISOString() ?? '-'],
  ['UNTIL', ({ until }) => until?.toISOString() ?? '-'],
  ['FAILED', ({ failures, requests }) => `${failures} of ${requests}`],
];

export default class UtilsCircuitBreakers extends GatewayCommand {
  static override description =
    'While the breaker of an endpoint is open nothing is sent to it, and its deliveries wait without using up their attempts. UNTIL is when one of them is tried: if that ' +
    'succeeds, the breaker closes and all others are sent. --reset closes it now, for an endpoint that has just been mended.';
  static override examples = [
    '<%= config.bin %> utils circuit-breakers',
    '<%= config.bin %> utils circuit-breakers --endpoint-id 019ab3c4-5d6e-7f70-9123-456789abcdef --json',
    '<%= config.bin %> utils circuit-breakers --endpoint-id 019ab3c4-5d6e-7f70-9123-456789abcdef --reset',
  ];
  static override flags = {
    ...jsonFlag,
    'endpoint-id': Flags.string({ helpValue: '<id>', summary: 'Show the breaker of this endpoint, also when it is closed.' }),
    reset: Flags.boolean({ summary: 'Close the breaker of --endpoint-id, and send what waits for it.' }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(UtilsCircuitBreakers);
    const { reset } = flags;
    const endpointId = flags['endpoint-id']?.toLowerCase();
    if (reset && endpointId === undefined)
      throw wrongUse(
        '--reset does not say whose breaker to close',
        'add --endpoint-id; without --reset the breakers that are not closed are listed with their ids',
      );
    const { config } = this.resolve(flags);
    if (config.kv.type === 'in-memory')
      throw wrongUse(
        'kv.type is in-memory, and the breakers are in the memory of the agent alone',
        'ask the management API of that process, or set kv.type to redis',
      );
    const shown = await withDatabase(config, async (database) => {
      if (reset) await resetBreakerOf(database, config, endpointId!);
      return readShown(database, config, endpointId);
    });
    this.log(answerTable(shown, columns, flags));
    if (reset) this.logToStderr('The breaker is closed. Agents hear of it within two seconds, and send what waits then.');
    else if (shown.length === 0) this.logToStderr('The breakers of all endpoints are closed.');
  }
}

/** The breakers that are not closed, or that of one endpoint, with the fields of the management API. */
async function readShown({ pool }: Database, config: Config, endpointId: string | undefined) {
  const [{ readBreakerEndpoints }, { breakerView, readBreakers }, { withKv }] = await Promise.all([
    import('@gateway/store/config'),
    import('@gateway/store/kv'),
    import('../../app/kv.js'),
  ]);
  const breakers = await withKv(config, readBreakers);
  const open = [...breakers].flatMap(([id, { state }]) => (state === 'closed' ? [] : id));
  const endpoints = endpointId === undefined ? await readBreakerEndpoints(pool, open) : [await findEndpoint(pool, endpointId)];
  return endpoints.map(({ id, name, project_id, project_name }) => ({
    ...{ endpoint_id: id, endpoint_name: name, project_id, project_name },
    ...breakerView(breakers.get(id)),
  }));
}

/** Closes the breaker of an endpoint, and makes the deliveries that wait for it due. */
async function resetBreakerOf({ pool }: Database, config: Config, endpointId: string): Promise<void> {
  const [{ expediteDeliveries }, { resetBreaker }, { withKv }] = await Promise.all([
    import('@gateway/store/deliveries'),
    import('@gateway/store/kv'),
    import('../../app/kv.js'),
  ]);
  const { project_id: projectId } = await findEndpoint(pool, endpointId);
  await withKv(config, (kv) => resetBreaker(kv, endpointId));
  await expediteDeliveries(pool, { projectId, endpointId }, ['breaker']);
}

async function findEndpoint(pool: Database['pool'], id: string) {
  const { readBreakerEndpoints } = await import('@gateway/store/config');
  const [endpoint] = isId(id) ? await readBreakerEndpoints(pool, [id]) : [];
  if (!endpoint) throw new GatewayError('not_found', { thing: 'endpoint', id });
  return endpoint;
}
