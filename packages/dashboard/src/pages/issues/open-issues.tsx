import type { Issue } from '@gateway/client';
import { api, useResource } from '../../api/index.js';
import { type TableColumns, Link, Panel, Table, timeCell } from '../../components/index.js';
import { count } from '../../format/number.js';
import { kindWords } from './kind.js';

const LIVE_MS = 5_000;
const READ = 100;
const SHOWN = 5;

export function OpenIssues() {
  const { data } = useResource(
    'open issues',
    async (options) =>
      (
        await api()
          .issues.list({ state: ['open'], perPage: READ }, options)
          .page()
      ).content,
    LIVE_MS,
  );
  if (!data?.length) return null;
  const rows = [...data].sort((one, other) => other.failures - one.failures).slice(0, SHOWN);
  return (
    <Panel title="Open issues" actions={<Link to="/issues">All issues</Link>}>
      <Table label="Open issues" rows={rows} columns={columns} />
    </Panel>
  );
}

const columns: TableColumns<Issue> = {
  Issue: ({ uid, kind, endpoint_name: name }) => (
    <Link to={`/issues/${uid}`}>
      {kindWords(kind)} at {name}
    </Link>
  ),
  Reason: ({ error }) => error,
  Failures: { isNumber: true, cell: ({ failures }) => count(failures) },
  'First seen': timeCell('first_seen_at'),
  'Last seen': timeCell('last_seen_at'),
};
