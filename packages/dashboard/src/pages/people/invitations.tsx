import type { Invitation } from '@gateway/client';
import { accountApi } from '../../api/client.js';
import { useList, type List } from '../../api/use-list.js';
import { Badge, type Tone } from '../../components/data/badge.js';
import { Paged } from '../../components/data/paged.js';
import { Table } from '../../components/data/table.js';
import { Time } from '../../components/data/time.js';
import { toast } from '../../components/feedback/toast.js';
import { ConfirmButton } from '../../components/form/confirm.js';
import { Panel } from '../../components/layout/panel.js';
import type { ShownOrganisation } from './organisation.js';

const TONES: Readonly<Record<string, Tone>> = { open: 'info', accepted: 'ok' };
const NONE = { content: [], pagination: { next_page_cursor: null } };

/** The invitations of an organisation; none without an id, for users who cannot see them. */
export function useInvitations(organisation: string | undefined): List<Invitation> {
  return useList<Invitation>(`${organisation} invitations`, (page, signal) =>
    organisation === undefined
      ? Promise.resolve(NONE as never)
      : accountApi().invitations.list(organisation, page, { signal }).page(),
  );
}

function stateOf({
  accepted_at: accepted,
  revoked_at: revoked,
  expires_at: expires,
}: Invitation): string {
  if (accepted) return 'accepted';
  if (revoked) return 'revoked';
  return new Date(expires).getTime() <= Date.now() ? 'expired' : 'open';
}

export function Invitations({
  organisation,
  list,
}: {
  readonly organisation: ShownOrganisation;
  readonly list: List<Invitation>;
}) {
  const columns = [
    { name: 'Email', cell: ({ email }: Invitation) => email },
    { name: 'Role', cell: ({ role }: Invitation) => role },
    {
      name: 'State',
      cell: (it: Invitation) => <Badge status={stateOf(it)} tone={TONES[stateOf(it)] ?? 'plain'} />,
    },
    { name: 'Invited', cell: ({ created_at: at }: Invitation) => <Time at={at} look="row" /> },
    {
      name: 'Expires',
      cell: (it: Invitation) =>
        stateOf(it) === 'open' && <Time at={it.expires_at} look="relative" />,
    },
    {
      name: 'Actions',
      cell: (it: Invitation) =>
        stateOf(it) === 'open' && (
          <span class="row-actions">
            <ConfirmButton
              label="Revoke…"
              spoken={`Revoke the invitation of ${it.email}`}
              title="Revoke the invitation?"
              verb="Revoke"
              work={async () => {
                await accountApi().invitations.revoke(organisation.uid, it.uid);
                toast(`The invitation of ${it.email} was revoked.`);
                list.refresh();
              }}
            >
              <p>The link of {it.email} does not work any more then.</p>
            </ConfirmButton>
          </span>
        ),
    },
  ];
  return (
    <Panel title="Invitations">
      <Paged list={list} lines={2}>
        {(rows) =>
          rows.length === 0 ? (
            <p class="muted">
              Nobody was invited yet. Invite a colleague, and give them the link that you get.
            </p>
          ) : (
            <Table<Invitation> label="Invitations" rows={rows} columns={columns} />
          )
        }
      </Paged>
    </Panel>
  );
}
