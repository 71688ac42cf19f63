import type { InstanceHealth } from '@gateway/client';
import { accountApi, useResource } from '../../api/index.js';
import {
  Badge,
  Empty,
  Loaded,
  Page,
  Panel,
  Table,
  type TableColumns,
  Tabs,
  tabValue,
  Time,
  timeCell,
} from '../../components/index.js';
import { capital } from '../../format/text.js';
import { session } from '../../session/session.js';
import { Extensions } from './extensions.js';
import { Settings } from './settings.js';
import { Shards } from './shards.js';

const TABS = [
  ['health', 'Health'],
  ['shards', 'Shards'],
  ['settings', 'Settings'],
  ['plugins', 'Plugins, flags and licence'],
] as const;

export default function InstancePage() {
  const tab = tabValue('tab', TABS);
  if (!session.value?.is_instance_admin) {
    return (
      <Page title="Instance">
        <Empty title="You cannot view the instance">
          <p>
            Only instance admins can view its settings, plugins and health: the users created by{' '}
            <code>gateway bootstrap</code>.
          </p>
        </Empty>
      </Page>
    );
  }
  return (
    <Page title="Instance">
      <Tabs name="tab" label="Instance sections" tabs={TABS} />
      {tab === 'health' && <Health />}
      {tab === 'shards' && <Shards />}
      {tab === 'settings' && <Settings />}
      {tab === 'plugins' && <Extensions />}
    </Page>
  );
}

const LIVE_MS = 5_000;

export function Health() {
  const health = useResource(
    'instance health',
    (options) => accountApi().instance.getHealth(options),
    LIVE_MS,
  );
  return (
    <Loaded resource={health}>
      {({ server: { version, state, components }, agents }) => (
        <>
          <Panel title={`Server ${version}`} actions={<Badge status={state} />}>
            <Table
              label="Server components"
              columns={componentColumns}
              rows={components}
              idOf={({ name }) => name}
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
                rows={agents}
                idOf={({ shard, id }) => `${shard} ${id}`}
              />
            )}
          </Panel>
        </>
      )}
    </Loaded>
  );
}

const componentColumns: TableColumns<InstanceHealth['server']['components'][number]> = {
  Component: ({ name }) => name,
  State: ({ state }) => <Badge status={state} />,
  Reason: ({ reason }) => reason && capital(reason),
  Since: ({ since }) => <Time at={since} look="relative" />,
};

const agentColumns = (
  agents: InstanceHealth['agents'],
): TableColumns<InstanceHealth['agents'][number]> => ({
  Agent: ({ name }) => name,
  Shard: agents.some(({ shard }) => shard !== 'default') && (({ shard }) => shard),
  State: ({ state }) => <Badge status={state} tone={state === 'alive' ? 'ok' : 'bad'} />,
  'Reads sources': ({ reads_sources: reads }) => (reads ? 'yes' : 'no'),
  Started: timeCell('started_at'),
  'Lease expires': timeCell('expires_at'),
});
