import type { PersonalKey } from '@gateway/client';
import { useState } from 'preact/hooks';
import { accountApi } from '../../api/client.js';
import { useList } from '../../api/use-list.js';
import { Button } from '../../components/layout/button.js';
import { Page } from '../../components/layout/page.js';
import { Panel } from '../../components/layout/panel.js';
import { session } from '../../session/session.js';
import { KeyList } from '../keys/key-list.js';
import { ROLES, type KeyRing } from '../keys/key-state.js';
import { NewKey } from '../keys/new-key.js';
import { ALL_RESOURCES } from '../keys/scopes.js';
import { Password } from './password.js';
import { Profile } from './profile.js';
import { Sessions } from './sessions.js';

const EVERYTHING = 'everything that I may';

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
    roles: [...ROLES, ['admin', 'what admins may'], ['', EVERYTHING]],
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
        For your own scripts: a key reaches all your projects. Programs of a project use a key of
        the project.
      </p>
      <KeyList ring={ring} />
      {isNew && <NewKey ring={ring} onClose={() => setNew(false)} />}
    </Panel>
  );
}
