import type { ApiKey } from '@gateway/client';
import { api, useList } from '../../api/index.js';
import { DialogButton, Page } from '../../components/index.js';
import { may } from '../../session/session.js';
import { KeyList, NewKey } from './key-list.js';
import { type KeyRing, PROJECT_RESOURCES, ROLES } from './key-ring.js';

export default function ProjectKeysPage() {
  const list = useList<ApiKey>('API keys', (page, options) => api().apiKeys.list(page, options));
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
          <DialogButton
            kind="main"
            keys="n"
            dialog={(close) => <NewKey ring={ring} onClose={close} />}
          >
            New API key
          </DialogButton>
        )
      }
    >
      <p class="muted">
        Programs call the API of this project with these keys, as bearer tokens. A key works for
        this project only.
      </p>
      <KeyList ring={ring} />
    </Page>
  );
}
