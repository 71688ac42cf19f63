import type { PersonalKey } from '@gateway/client';
import { useState } from 'preact/hooks';
import { accountApi } from '../../api/client.js';
import { useList } from '../../api/read.js';
import { Button, Page, Panel } from '../../components/layout.js';
import { session } from '../../session/session.js';
import { NewKey } from '../keys/key-dialog.js';
import { KeyList } from '../keys/key-list.js';
import { ALL_RESOURCES, ROLES, type KeyRing } from '../keys/key-ring.js';
import { Password, Profile } from './forms.js';
import { Sessions } from './sessions.js';

const EVERYTHING = 'all my permissions';

export default function AccountPage() {
  return (
    <Page title="Your account" above={session.value?.user.email}>
      <div class="account-forms">
        <Profile />
        <Password />
      </div>
      <PersonalKeys />
      <Sessions />
    </Page>
  );
}

function PersonalKeys() {
  const [isNew, setNew] = useState(false);
  const list = useList<PersonalKey>('personal API keys', (page, signal) =>
    accountApi().users.listApiKeys(page, { signal }).page(),
  );
  const ring: KeyRing = {
    label: 'Personal API keys',
    everything: EVERYTHING,
    roles: [...ROLES, ['admin', 'all permissions of an admin'], ['', EVERYTHING]],
    resources: ALL_RESOURCES,
    list,
    create: (key) => accountApi().users.createApiKey(key),
    update: (id, changes) => accountApi().users.updateApiKey(id, changes),
    revoke: (id) => accountApi().users.revokeApiKey(id),
    mayChange: true,
  };
  return (
    <Panel
      title="Personal API keys"
      actions={<Button onPress={() => setNew(true)}>New API key…</Button>}
    >
      <p class="muted">
        Personal API keys are for your own scripts and work in all your projects. Applications
        should use a project API key.
      </p>
      <KeyList ring={ring} />
      {isNew && <NewKey ring={ring} onClose={() => setNew(false)} />}
    </Panel>
  );
}
