import type { CreatedInvitation, Invitation } from '@gateway/client';
import { useState } from 'preact/hooks';
import { useAction } from '../../api/change.js';
import { accountApi } from '../../api/client.js';
import { useList, type List } from '../../api/read.js';
import {
  Badge,
  NewSecret,
  Paged,
  Table,
  Time,
  timeColumn,
  type TableColumn,
  type Tone,
} from '../../components/data.js';
import { toast } from '../../components/feedback.js';
import { fieldError, Select, TextField } from '../../components/field.js';
import { ConfirmButton, Dialog, FormDialog } from '../../components/form.js';
import { Button, Panel } from '../../components/layout.js';
import { root } from '../../router/location.js';
import type { MemberRole } from '../../session/session.js';
import { givableRoles, type ShownOrganisation } from './organisation.js';

const TONES: Readonly<Record<string, Tone>> = { open: 'info', accepted: 'ok' };
const NONE = { content: [], pagination: { next_page_cursor: null } };

/** Empty without an id, as for users who may not see invitations. */
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
  organisation: ShownOrganisation;
  list: List<Invitation>;
}) {
  const columns: readonly TableColumn<Invitation>[] = [
    { name: 'Email', cell: ({ email }) => email },
    { name: 'Role', cell: ({ role }) => role },
    {
      name: 'State',
      cell: (it) => <Badge status={stateOf(it)} tone={TONES[stateOf(it)] ?? 'plain'} />,
    },
    timeColumn('Invited', 'created_at', 'row'),
    {
      name: 'Expires',
      cell: (it) => stateOf(it) === 'open' && <Time at={it.expires_at} look="relative" />,
    },
    {
      name: 'Actions',
      cell: (it) =>
        stateOf(it) === 'open' && (
          <span class="row-actions">
            <ConfirmButton
              label="Revoke…"
              spoken={`Revoke the invitation of ${it.email}`}
              title="Revoke this invitation?"
              verb="Revoke"
              work={async () => {
                await accountApi().invitations.revoke(organisation.uid, it.uid);
                toast(`The invitation of ${it.email} was revoked.`);
                list.refresh();
              }}
            >
              <p>The invitation link for {it.email} stops working.</p>
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
            <p class="muted">No invitations yet. Invite a colleague and send them the link.</p>
          ) : (
            <Table label="Invitations" rows={rows} columns={columns} />
          )
        }
      </Paged>
    </Panel>
  );
}

/** The user passes on the link, because the gateway sends no email to people. */
export function Invite({
  organisation,
  onDone,
  onClose,
}: {
  organisation: ShownOrganisation;
  onDone: () => void;
  onClose: () => void;
}) {
  const [email, setEmail] = useState('');
  const [role, setRole] = useState<MemberRole>('member');
  const [made, setMade] = useState<CreatedInvitation>();
  const action = useAction(async () => {
    setMade(await accountApi().invitations.create(organisation.uid, { email: email.trim(), role }));
    onDone();
  });
  const title = `Invite to ${organisation.name}`;
  if (made) {
    return (
      <Dialog
        title={title}
        onClose={onClose}
        actions={
          <Button kind="main" onPress={onClose}>
            Done
          </Button>
        }
      >
        <NewSecret what="link" secret={invitationLink(made.token)}>
          <p>
            Send the link to {made.email}. Anyone with the link can accept the invitation until{' '}
            <Time at={made.expires_at} />.
          </p>
        </NewSecret>
      </Dialog>
    );
  }
  return (
    <FormDialog title={title} verb="Create link" action={action} onClose={onClose}>
      <TextField
        label="Email"
        type="email"
        value={email}
        onChange={setEmail}
        error={fieldError(action.error, 'email')}
        isRequired
        hasFocus
      />
      <Select
        label="Role"
        hint="Each role includes the ones above it."
        value={role}
        onChange={(value) => setRole(value as MemberRole)}
        options={givableRoles(organisation.uid)}
      />
    </FormDialog>
  );
}

/** Browsers do not send the fragment, so the token appears in no server or proxy log. */
function invitationLink(token: string): string {
  return `${location.origin}${root}/#invitation=${token}`;
}
