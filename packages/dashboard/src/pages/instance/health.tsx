import type { InstanceHealth } from '@gateway/client';
import { accountApi } from '../../api/client.js';
import { useResource } from '../../api/read.js';
import { Badge, Table, Time, timeColumn, type TableColumn } from '../../components/data.js';
import { Empty, Loaded } from '../../components/feedback.js';
import { Panel } from '../../components/layout.js';
import { capital } from '../../format/text.js';

const LIVE_MS = 5_000;

type Component = InstanceHealth['server']['components'][number] & { readonly uid: string };
type ShownAgent = InstanceHealth['agents'][number] & { readonly uid: string };

/** The responding server with its dependencies, and the agents. */
export function Health() {
  const health = useResource(
    'instance health',
    (signal) => accountApi().instance.getHealth({ signal }),
    { everyMs: LIVE_MS },
  );
  return (
    <Loaded resource={health}>
      {({ server: { version, state, components }, agents }) => (
        <>
          <Panel title={`Server ${version}`} actions={<Badge status={state} />}>
            <Table
              label="Server components"
              columns={componentColumns}
              rows={components.map((it) => ({ ...it, uid: it.name }))}
            />
          </Panel>
          <Panel title="Agents">
            {agents.some((agent) => agent.state === 'alive') ? (
              <p class="muted">
                Each agent reports what it reads and delivers at its own /healthz.
              </p>
            ) : (
              <Empty title="No agent is running">
                <p>
                  Without an agent, sources are not read and nothing is delivered. Start one with{' '}
                  <code>gateway agent</code>.
                </p>
              </Empty>
            )}
            {agents.length > 0 && (
              <Table
                label="Agents"
                columns={agentColumns(agents)}
                rows={agents.map((it) => ({ ...it, uid: `${it.shard} ${it.id}` }))}
              />
            )}
          </Panel>
        </>
      )}
    </Loaded>
  );
}

const componentColumns: readonly TableColumn<Component>[] = [
  { name: 'Component', cell: ({ name }) => name },
  { name: 'State', cell: ({ state }) => <Badge status={state} /> },
  { name: 'Reason', cell: ({ reason }) => (reason ? capital(reason) : '') },
  { name: 'Since', cell: ({ since }) => <Time at={since} look="relative" /> },
];

/** With the shard if there are several. */
const agentColumns = (agents: InstanceHealth['agents']): readonly TableColumn<ShownAgent>[] => [
  { name: 'Agent', cell: ({ name }) => name },
  ...(agents.some(({ shard }) => shard !== 'default')
    ? [{ name: 'Shard', cell: ({ shard }: ShownAgent) => shard }]
    : []),
  {
    name: 'State',
    cell: ({ state }) => <Badge status={state} tone={state === 'alive' ? 'ok' : 'bad'} />,
  },
  { name: 'Reads sources', cell: ({ reads_sources: reads }) => (reads ? 'yes' : 'no') },
  timeColumn('Started', 'started_at'),
  timeColumn('Lease expires', 'expires_at'),
];
