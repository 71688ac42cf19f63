import {
  Flags,
  GatewayCommand,
  jsonFlag,
  oneOf,
  projectFlag,
  projectIdOf,
  showNewest,
  valueFlag,
} from '../../../app/gateway-command.js';
import { escapeLine } from '../../../output/escape-terminal.js';

const STATES = ['open', 'muted', 'resolved'] as const;
const NAME_CHARS = 24;
const ERROR_CHARS = 60;

export default class UtilsIssuesList extends GatewayCommand {
  static override description =
    'An issue groups the failed attempts of an endpoint by kind of error. It resolves when the endpoint succeeds again. ' +
    '`gateway utils issues retry` resends the deliveries that failed since.';
  static override examples = [
    'gateway utils issues list',
    'gateway utils issues list --state resolved --json',
  ];
  static override flags = {
    state: valueFlag('<state>', `Only issues in this state: ${STATES.join(', ')}. [default: open]`),
    ...projectFlag,
    limit: Flags.integer({ summary: 'Maximum number of issues.', min: 1, max: 1000, default: 100 }),
    ...jsonFlag,
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(UtilsIssuesList);
    const state = oneOf('--state', flags.state ?? 'open', STATES)!;
    const options = { projectId: projectIdOf(flags), limit: flags.limit };
    await this.api(flags, (api) =>
      showNewest(
        api,
        options,
        ({ issues }, perPage) => issues.list({ state: [state], perPage }),
        (issues, hasMore) => {
          if (issues.length === 0) this.logToStderr(`There are no ${state} issues.`);
          if (issues.length > 0 || flags.json)
            this.logTable(issues, flags, [
              ['ID', ({ id }) => id],
              ['ENDPOINT', ({ endpoint_name: name }) => escapeLine(name, NAME_CHARS)],
              ['KIND', ({ kind }) => kind],
              ['FAILURES', ({ failures }) => failures.toLocaleString('en-US')],
              ['FIRST', ({ first_seen_at: first }) => first],
              ['LAST', ({ last_seen_at: last }) => last],
              ['ERROR', ({ error }) => escapeLine(error, ERROR_CHARS)],
            ]);
          if (hasMore)
            this.logToStderr('There are more issues: raise --limit, or choose a project.');
        },
      ),
    );
  }
}
