import type { ApiKey } from '@gateway/client';
import { useState } from 'preact/hooks';
import { api } from '../../api/client.js';
import { useList } from '../../api/read.js';
import { Button, Page } from '../../components/layout.js';
import { may } from '../../session/session.js';
import { NewKey } from './key-dialog.js';
import { KeyList } from './key-list.js';
import { PROJECT_RESOURCES, ROLES, type KeyRing } from './key-ring.js';

export default function ProjectKeysPage() {
  const [isNew, setNew] = useState(false);
  const list = useList<ApiKey>('API keys', (page, signal) =>
    api().apiKeys.list(page, { signal }).page(),
  );
  const ring: KeyRing = {
    label: 'API keys',
    everything: 'full access to the project',
    roles: [...ROLES, ['', 'Full access to the project']],
    resources: PROJECT_RESOURCES,
    list,
    create: (key) => api().apiKeys.create(key),
    update: (id, changes) => api().apiKeys.update(id, changes),
    revoke: (id) => api().apiKeys.revoke(id),
    mayChange: may('admin'),
  };
  return (
    <Page
      title="API keys"
      actions={
        ring.mayChange && (
          <Button kind="main" keys="n" onPress={() => setNew(true)}>
            New API key
          </Button>
        )
      }
    >
      <p class="muted">
        Programs call the API of this project with these keys, as bearer tokens. A key works for
        this project only.
      </p>
      <KeyList ring={ring} />
      {isNew && <NewKey ring={ring} onClose={() => setNew(false)} />}
    </Page>
  );
}
