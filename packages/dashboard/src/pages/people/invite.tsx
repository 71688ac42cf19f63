import type { CreatedInvitation } from '@gateway/client';
import { useState } from 'preact/hooks';
import { accountApi } from '../../api/client.js';
import { useAction } from '../../api/use-action.js';
import { NewSecret } from '../../components/data/new-secret.js';
import { Time } from '../../components/data/time.js';
import { Button } from '../../components/layout/button.js';
import { Dialog } from '../../components/form/dialog.js';
import { fieldError, Select, TextField } from '../../components/form/field.js';
import { FormDialog } from '../../components/form/form-dialog.js';
import { root } from '../../router/location.js';
import type { Role } from '../../session/access.js';
import { givableRoles, type ShownOrganisation } from './organisation.js';

/**
 * Invites a person. Shows the link for the user to pass on: the gateway sends no mail to people.
 */
export function Invite({
  organisation,
  onDone,
  onClose,
}: {
  readonly organisation: ShownOrganisation;
  readonly onDone: () => void;
  readonly onClose: () => void;
}) {
  const [email, setEmail] = useState('');
  const [role, setRole] = useState<Role>('member');
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
            Give it to {made.email}: whoever has it can accept, until <Time at={made.expires_at} />.
          </p>
        </NewSecret>
      </Dialog>
    );
  }
  return (
    <FormDialog title={title} verb="Make the link" action={action} onClose={onClose}>
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
        hint="Each role may also do what those above it may."
        value={role}
        onChange={(value) => setRole(value as Role)}
        options={givableRoles(organisation.uid)}
      />
    </FormDialog>
  );
}

/** Clients do not send the fragment, so the token reaches no log of a server or proxy. */
function invitationLink(token: string): string {
  return `${location.origin}${root}/#invitation=${token}`;
}
