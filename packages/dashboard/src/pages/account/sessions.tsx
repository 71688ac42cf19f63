import type { PersonalKey } from '@gateway/client';
import { accountApi } from '../../api/client.js';
import { useList } from '../../api/read.js';
import { Badge, Paged, Table, timeColumn, type TableColumn } from '../../components/data.js';
import { toast } from '../../components/feedback.js';
import { ConfirmButton } from '../../components/form.js';
import { Panel } from '../../components/layout.js';
import { session } from '../../session/session.js';
import { stateOf } from '../keys/key-ring.js';

export function Sessions() {
  const list = useList<PersonalKey>('sessions', (page, signal) =>
    accountApi().users.listSessions(page, { signal }).page(),
  );
  const columns: readonly TableColumn<PersonalKey>[] = [
    {
      name: 'Browser',
      cell: ({ uid, name }) => (
        <span title={name}>
          {browserOf(name)}{' '}
          {uid === session.value?.key_id && <Badge status="current" tone="info" />}
        </span>
      ),
    },
    timeColumn('Signed in', 'created_at', 'row'),
    timeColumn('Last used', 'last_used_at', 'relative', '–'),
    timeColumn('Expires', 'expires_at'),
    {
      name: 'Actions',
      cell: ({ uid, name }) =>
        uid !== session.value?.key_id && (
          <span class="row-actions">
            <ConfirmButton
              label="End…"
              spoken={`End the session of ${browserOf(name)}`}
              title="End this session?"
              verb="End session"
              work={async () => {
                await accountApi().users.revokeSession(uid);
                toast('Session ended.');
                list.refresh();
              }}
            >
              <p>
                The browser must sign in again. If you do not recognise this session, change your
                password too.
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
          <Table
            label="Sessions"
            columns={columns}
            rows={rows.filter((row) => stateOf(row) === 'active')}
          />
        )}
      </Paged>
    </Panel>
  );
}

/**
 * In a User-Agent header. The first match wins, because Edge and Opera also include Chrome, and
 * Chrome includes Safari.
 */
const BROWSERS = [
  ['Edg', 'Edge'],
  ['OPR', 'Opera'],
  ['Firefox', 'Firefox'],
  ['Chrome', 'Chrome'],
  ['Safari', 'Safari'],
] as const;
const SYSTEMS = [
  ['Android', 'Android'],
  ['iPhone', 'iPhone'],
  ['iPad', 'iPad'],
  ['Windows', 'Windows'],
  ['Mac OS', 'macOS'],
  ['Linux', 'Linux'],
] as const;

/** Such as `Firefox on Linux`. An unknown header is returned unchanged. */
export function browserOf(agent: string): string {
  const find = (names: readonly (readonly [string, string])[]) =>
    names.find(([part]) => agent.includes(part))?.[1];
  const browser = find(BROWSERS);
  const system = find(SYSTEMS);
  if (!browser) return agent;
  return system ? `${browser} on ${system}` : browser;
}
