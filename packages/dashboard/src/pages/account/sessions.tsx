import type { PersonalKey } from '@gateway/client';
import { accountApi, useList } from '../../api/index.js';
import {
  Badge,
  type TableColumns,
  ConfirmButton,
  Paged,
  Panel,
  Table,
  timeCell,
} from '../../components/index.js';
import { session } from '../../session/session.js';
import { stateOf } from '../keys/key-ring.js';

export function Sessions() {
  const list = useList<PersonalKey>('sessions', (page, options) =>
    accountApi().users.listSessions(page, options),
  );
  const columns: TableColumns<PersonalKey> = {
    Browser: ({ uid, name }) => (
      <span title={name}>
        {browserOf(name)} {uid === session.value?.key_id && <Badge status="current" tone="info" />}
      </span>
    ),
    'Signed in': timeCell('created_at', 'row'),
    'Last used': timeCell('last_used_at', 'relative', '–'),
    Expires: timeCell('expires_at'),
    Actions: ({ uid, name }) =>
      uid !== session.value?.key_id && (
        <ConfirmButton
          label="End…"
          verb="End session"
          title="End this session?"
          what={`the session of ${browserOf(name)}`}
          isRow
          work={() => accountApi().users.revokeSession(uid)}
          told="Session ended."
        >
          <p>
            The browser must sign in again. If you do not recognise this session, change your
            password too.
          </p>
        </ConfirmButton>
      ),
  };
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
