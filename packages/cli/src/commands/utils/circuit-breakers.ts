import { GatewayError } from '@gateway/core/errors';
import { isId } from '@gateway/core/events';
import {
  Flags,
  GatewayCommand,
  jsonFlag,
  valueFlag,
  withShards,
  wrongUse,
} from '../../app/gateway-command.js';
import { escapeLine } from '../../output/escape-terminal.js';

export default class UtilsCircuitBreakers extends GatewayCommand {
  static override description =
    'While a breaker is open, nothing is sent to its endpoint, and deliveries wait without using attempts. At UNTIL, one delivery ' +
    'is tried; if it succeeds, the breaker closes and the others are sent. --reset closes the breaker now, for an endpoint that ' +
    'was just fixed.';
  static override examples = [
    '<%= config.bin %> utils circuit-breakers',
    '<%= config.bin %> utils circuit-breakers --endpoint-id 019ab3c4-5d6e-7f70-9123-456789abcdef --json',
    '<%= config.bin %> utils circuit-breakers --endpoint-id 019ab3c4-5d6e-7f70-9123-456789abcdef --reset',
  ];
  static override flags = {
    ...jsonFlag,
    'endpoint-id': valueFlag('<id>', 'Show the breaker of this endpoint, even if it is closed.'),
    reset: Flags.boolean({
      summary: 'Close the breaker of --endpoint-id and send the waiting deliveries.',
    }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(UtilsCircuitBreakers);
    const { reset } = flags;
    const endpointId = flags['endpoint-id']?.toLowerCase();
    if (reset && endpointId === undefined)
      throw wrongUse(
        '--reset needs an endpoint',
        'add --endpoint-id; without --reset, the command lists the breakers that are not closed, with the ids of their endpoints',
      );
    const { config } = this.resolve(flags);
    if (config.kv.type === 'in-memory')
      throw wrongUse(
        'kv.type is in-memory, so the breakers are only in the memory of the agent',
        'ask the management API of that process, or set kv.type to redis',
      );
    const [
      { expediteDeliveries },
      { readBreakerEndpoints },
      { breakerView, readBreakers, resetBreaker },
      { shardsOf, withKv },
    ] = await Promise.all([
      import('@gateway/store/deliveries'),
      import('@gateway/store/config'),
      import('@gateway/store/kv'),
      import('../../app/stores.js'),
    ]);
    const shown = await withShards(config, async (shards) => {
      const { pool } = shards.control;
      const named =
        endpointId === undefined
          ? undefined
          : await readBreakerEndpoints(pool, isId(endpointId) ? [endpointId] : []);
      if (named?.length === 0)
        throw new GatewayError('not_found', { thing: 'endpoint', id: endpointId! });
      if (reset) {
        await withKv(config, (kv) => resetBreaker(kv, endpointId!));
        const projectId = named![0]!.project_id;
        for (const { planes } of await shardsOf(shards, projectId))
          await expediteDeliveries(planes, { projectId, endpointId: endpointId! }, ['breaker']);
      }
      const breakers = await withKv(config, (kv) => readBreakers(kv));
      const open = [...breakers].flatMap(([id, { state }]) => (state === 'closed' ? [] : id));
      return (named ?? (await readBreakerEndpoints(pool, open))).map(
        ({ id, name, project_id, project_name }) => ({
          ...{ endpoint_id: id, endpoint_name: name, project_id, project_name },
          ...breakerView(breakers.get(id)),
        }),
      );
    });
    this.logTable(shown, flags, [
      ['PROJECT', ({ project_name: name }) => escapeLine(name)],
      ['ENDPOINT', ({ endpoint_name: name }) => escapeLine(name)],
      ['ID', ({ endpoint_id: id }) => id],
      ['STATE', ({ state }) => state],
      ['SINCE', ({ since }) => since?.toISOString() ?? '-'],
      ['UNTIL', ({ until }) => until?.toISOString() ?? '-'],
      ['FAILED', ({ failures, requests }) => `${failures} of ${requests}`],
    ]);
    if (reset)
      this.logToStderr(
        'The breaker is closed. Agents notice within two seconds and send the waiting deliveries.',
      );
    else if (shown.length === 0) this.logToStderr('The breakers of all endpoints are closed.');
  }
}
