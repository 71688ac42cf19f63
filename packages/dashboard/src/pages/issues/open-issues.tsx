import type { Issue } from '@gateway/client';
import { api } from '../../api/client.js';
import { useResource } from '../../api/read.js';
import { Table, timeColumn, type TableColumn } from '../../components/data.js';
import { Panel } from '../../components/layout.js';
import { count } from '../../format/number.js';
import { projectHref } from '../../router/location.js';
import { kindWords } from './kind.js';

const LIVE_MS = 5_000;
const READ = 100;
const SHOWN = 5;

/** The issues with the most failures. Hidden if there are none. */
export function OpenIssues() {
  const { data } = useResource(
    'open issues',
    async (signal) =>
      (
        await api()
          .issues.list({ state: ['open'], perPage: READ }, { signal })
          .page()
      ).content,
    { everyMs: LIVE_MS },
  );
  if (!data?.length) return null;
  const rows = [...data].sort((one, other) => other.failures - one.failures).slice(0, SHOWN);
  return (
    <Panel title="Open issues" actions={<a href={projectHref('/issues')}>All issues</a>}>
      <Table label="Open issues" rows={rows} columns={columns} />
    </Panel>
  );
}

const columns: readonly TableColumn<Issue>[] = [
  {
    name: 'Issue',
    cell: ({ uid, kind, endpoint_name: name }) => (
      <a href={projectHref(`/issues/${uid}`)}>
        {kindWords(kind)} at {name}
      </a>
    ),
  },
  { name: 'Reason', cell: ({ error }) => error },
  { name: 'Failures', isNumber: true, cell: ({ failures }) => count(failures) },
  timeColumn('First seen', 'first_seen_at'),
  timeColumn('Last seen', 'last_seen_at'),
];
