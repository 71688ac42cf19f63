import type { PersonalKey } from '@gateway/client';
import { accountApi, useList } from '../../api/index.js';
import { DialogButton, Page, Panel } from '../../components/index.js';
import { session } from '../../session/session.js';
import { KeyList, NewKey } from '../keys/key-list.js';
import { ALL_RESOURCES, type KeyRing, ROLES } from '../keys/key-ring.js';
import { Password, Profile } from './forms.js';
import { Sessions } from './sessions.js';

const EVERYTHING = 'all my permissions';

export default function AccountPage() {
  return (
    <Page title="Your account" above={session.value?.user.email}>
      <div class="columns">
        <Profile />
        <Password />
      </div>
      <PersonalKeys />
      <Sessions />
    </Page>
  );
}

function PersonalKeys() {
  const list = useList<PersonalKey>('personal API keys', (page, options) =>
    accountApi().users.listApiKeys(page, options),
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
      actions={
        <DialogButton dialog={(close) => <NewKey ring={ring} onClose={close} />}>
          New API key…
        </DialogButton>
      }
    >
      <p class="muted">
        Personal API keys are for your own scripts and work in all your projects. Applications
        should use a project API key.
      </p>
      <KeyList ring={ring} />
    </Panel>
  );
}
