import {
  command,
  Flags,
  jsonFlag,
  oneOf,
  projectFlag,
  readFlag,
  showNewest,
} from '../../../app/gateway-command.js';

const STATES = ['open', 'muted', 'resolved'] as const;

export default command({
  description:
    'An issue groups the failed attempts of an endpoint by kind of error. It resolves when the endpoint succeeds again. ' +
    '`gateway utils issues retry` resends the deliveries that failed since.',
  examples: ['gateway utils issues list', 'gateway utils issues list --state resolved --json'],
  flags: {
    state: readFlag(
      '<state>',
      `Only issues in this state: ${STATES.join(', ')}. [default: open]`,
      (name, given = 'open') => oneOf(name, given, STATES)!,
    ),
    ...projectFlag,
    limit: Flags.integer({ summary: 'Maximum number of issues.', min: 1, max: 1000, default: 100 }),
    ...jsonFlag,
  },
  run({ flags, api, note, table }) {
    const { state, json } = flags;
    return api((all) =>
      showNewest(
        all,
        flags,
        ({ issues }, perPage) => issues.list({ state: [state], perPage }),
        (issues, hasMore) => {
          if (issues.length === 0) note(`There are no ${state} issues.`);
          if (issues.length > 0 || json)
            table(issues, [
              ['ID', 'id'],
              ['ENDPOINT', 'endpoint_name', 24],
              ['KIND', 'kind'],
              ['FAILURES', ({ failures }) => failures.toLocaleString('en-US')],
              ['FIRST', 'first_seen_at'],
              ['LAST', 'last_seen_at'],
              ['ERROR', 'error', 60],
            ]);
          if (hasMore) note('There are more issues: raise --limit, or choose a project.');
        },
      ),
    );
  },
});
