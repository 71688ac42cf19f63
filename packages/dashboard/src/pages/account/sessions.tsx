import type { PersonalKey } from '@gateway/client';
import { accountApi } from '../../api/client.js';
import { useList } from '../../api/use-list.js';
import { Badge } from '../../components/data/badge.js';
import { Paged } from '../../components/data/paged.js';
import { Table } from '../../components/data/table.js';
import { Time } from '../../components/data/time.js';
import { toast } from '../../components/feedback/toast.js';
import { ConfirmButton } from '../../components/form/confirm.js';
import { Panel } from '../../components/layout/panel.js';
import { session } from '../../session/session.js';
import { stateOf } from '../keys/key-state.js';
import { browserOf } from './browser-name.js';

export function Sessions() {
  const list = useList<PersonalKey>('sessions', (page, signal) =>
    accountApi().users.listSessions(page, { signal }).page(),
  );
  const columns = [
    {
      name: 'Browser',
      cell: ({ uid, name }: PersonalKey) => (
        <span title={name}>
          {browserOf(name)}{' '}
          {uid === session.value?.key_id && <Badge status="this one" tone="info" />}
        </span>
      ),
    },
    { name: 'Signed in', cell: ({ created_at: at }: PersonalKey) => <Time at={at} look="row" /> },
    {
      name: 'Last used',
      cell: ({ last_used_at: at }: PersonalKey) => (at ? <Time at={at} look="relative" /> : '–'),
    },
    {
      name: 'Ends',
      cell: ({ expires_at: at }: PersonalKey) => at && <Time at={at} look="relative" />,
    },
    {
      name: 'Actions',
      cell: ({ uid, name }: PersonalKey) =>
        uid !== session.value?.key_id && (
          <span class="row-actions">
            <ConfirmButton
              label="End…"
              spoken={`End the session of ${browserOf(name)}`}
              title="End the session?"
              verb="End it"
              work={async () => {
                await accountApi().users.revokeSession(uid);
                toast('The session has ended.');
                list.refresh();
              }}
            >
              <p>
                That browser has to sign in again. Change your password too if it was not you who
                signed in.
              </p>
            </ConfirmButton>
          </span>
        ),
    },
  ];
  return (
    <Panel title="Sessions">
      <Paged list={list} lines={2}>
        {(rows) => (
          <Table<PersonalKey>
            label="Sessions"
            columns={columns}
            rows={rows.filter((row) => stateOf(row) === 'active')}
          />
        )}
      </Paged>
    </Panel>
  );
}
