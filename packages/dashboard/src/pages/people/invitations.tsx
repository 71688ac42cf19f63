import type { CreatedInvitation, Invitation } from '@gateway/client';
import { useState } from 'preact/hooks';
import { accountApi, type List, useList } from '../../api/index.js';
import {
  Badge,
  type TableColumns,
  ConfirmButton,
  FormDialog,
  NewSecret,
  Paged,
  Panel,
  Select,
  Table,
  TextField,
  Time,
  timeCell,
  type Tone,
  useForm,
} from '../../components/index.js';
import { root } from '../../router/location.js';
import type { MemberRole } from '../../session/session.js';
import { givableRoles, type ShownOrganisation } from './organisation.js';

const TONES: Readonly<Record<string, Tone>> = { open: 'info', accepted: 'ok' };
const NONE = { content: [], pagination: { next_page_cursor: null } };

/** Empty without an id, as for users who may not see invitations. */
export function useInvitations(organisation: string | undefined): List<Invitation> {
  return useList<Invitation>(`${organisation} invitations`, (page, options) =>
    organisation === undefined
      ? Promise.resolve(NONE as never)
      : accountApi().invitations.list(organisation, page, options),
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
  const columns: TableColumns<Invitation> = {
    Email: ({ email }) => email,
    Role: ({ role }) => role,
    State: (it) => <Badge status={stateOf(it)} tone={TONES[stateOf(it)] ?? 'plain'} />,
    Invited: timeCell('created_at', 'row'),
    Expires: (it) => stateOf(it) === 'open' && <Time at={it.expires_at} look="relative" />,
    Actions: (it) =>
      stateOf(it) === 'open' && (
        <ConfirmButton
          verb="Revoke"
          title="Revoke this invitation?"
          what={`the invitation of ${it.email}`}
          isRow
          work={() => accountApi().invitations.revoke(organisation.uid, it.uid)}
          told={`The invitation of ${it.email} was revoked.`}
        >
          <p>The invitation link for {it.email} stops working.</p>
        </ConfirmButton>
      ),
  };
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
  onClose,
}: {
  organisation: ShownOrganisation;
  onClose: () => void;
}) {
  const { uid, name } = organisation;
  const [made, setMade] = useState<CreatedInvitation>();
  const initial: { email: string; role: MemberRole } = { email: '', role: 'member' };
  const form = useForm(initial, async ({ email, role }) => {
    setMade(await accountApi().invitations.create(uid, { email: email.trim(), role }));
  });
  return (
    <FormDialog
      title={`Invite to ${name}`}
      verb="Create link"
      action={form}
      onClose={onClose}
      done={
        made && (
          <NewSecret what="link" secret={invitationLink(made.token)}>
            <p>
              Send the link to {made.email}. Anyone with the link can accept the invitation until{' '}
              <Time at={made.expires_at} />.
            </p>
          </NewSecret>
        )
      }
    >
      <TextField label="Email" type="email" {...form.text('email')} isRequired hasFocus />
      <Select
        label="Role"
        hint="Each role includes the ones above it."
        options={givableRoles(uid)}
        {...form.text('role')}
      />
    </FormDialog>
  );
}

/** Browsers do not send the fragment, so the token appears in no server or proxy log. */
function invitationLink(token: string): string {
  return `${location.origin}${root}/#invitation=${token}`;
}
