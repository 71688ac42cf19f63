import * as Flags from '@oclif/core/flags';
import { GatewayError } from '@gateway/core/errors';
import { answerTable, type Column } from '../../output/table.js';
import { GatewayCommand, jsonFlag } from '../../app/gateway-command.js';
import { escapeLine } from '../../output/escape-terminal.js';
import { withDatabase } from '../../app/database.js';

/** A breaker as the command prints it; fields are named as in the management API. */
interface Shown {
  readonly endpoint_id: string;
  readonly endpoint_name: string;
  readonly project_id: string;
  readonly project_name: string;
  readonly state: string;
  readonly since: Date | null;
  readonly until: Date | null;
  readonly requests: number;
  readonly failures: number;
}

const columns: readonly Column<Shown>[] = [
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
    const endpointId = typeof flags['endpoint-id'] === 'string' ? flags['endpoint-id'].toLowerCase() : undefined;
    const reset = flags['reset'] === true;
    if (reset && endpointId === undefined) {
      throw new GatewayError('wrong_use', {
        sentence: '--reset does not say whose breaker to close',
        fix: 'add --endpoint-id; without --reset the breakers that are not closed are listed with their ids',
      });
    }
    const { config } = this.resolve(flags);
    if (config.kv.type === 'in-memory') {
      throw new GatewayError('wrong_use', {
        sentence: 'kv.type is in-memory, and the breakers are in the memory of the agent alone',
        fix: 'ask the management API of that process, or set kv.type to redis',
      });
    }
    const { breakersOf, resetBreakerOf } = await import('../../breakers/breakers.js');
    const shown: readonly Shown[] = await withDatabase(config, async (database) => {
      if (reset) await resetBreakerOf(database.pool, config, endpointId!);
      return breakersOf(database.pool, config, endpointId);
    });
    this.log(answerTable(shown, columns, { json: flags['json'] === true }));
    if (reset) this.logToStderr('The breaker is closed. Agents hear of it within two seconds, and send what waits then.');
    else if (shown.length === 0) this.logToStderr('The breakers of all endpoints are closed.');
  }
}
