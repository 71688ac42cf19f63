import { Empty, Page, Tabs, tabValue } from '../../components/index.js';
import { session } from '../../session/session.js';
import { Extensions } from './extensions.js';
import { Health } from './health.js';
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
