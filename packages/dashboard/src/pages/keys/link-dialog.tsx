import type { CreatedPortalLink, PortalLink } from '@gateway/client';
import { useState } from 'preact/hooks';
import { api } from '../../api/client.js';
import { useAction } from '../../api/use-action.js';
import { NewSecret } from '../../components/data/new-secret.js';
import { Time } from '../../components/data/time.js';
import { Button } from '../../components/form/button.js';
import { Dialog } from '../../components/form/dialog.js';
import { Checkbox, fieldError, TextField } from '../../components/form/field.js';
import { FormDialog } from '../../components/form/form-dialog.js';
import { ExpiryField, type Expiry } from './expiry.js';
import { expiryOf, LINK_EXPIRIES } from './key-state.js';

/** Creates a portal link, or gives the `link` another URL, and shows the URL. */
export function LinkDialog({
  link,
  onSaved,
  onClose,
}: {
  readonly link?: PortalLink;
  readonly onSaved: () => void;
  readonly onClose: () => void;
}) {
  const [name, setName] = useState('');
  const [owner, setOwner] = useState('');
  const [isManaging, setManaging] = useState(false);
  const [expiry, setExpiry] = useState<Expiry>({ choice: LINK_EXPIRIES[0][0], time: '' });
  const [saved, setSaved] = useState<CreatedPortalLink>();
  const saving = useAction(async () => {
    const expires_at = expiryOf(expiry.choice, expiry.time) ?? undefined;
    const { portalLinks } = api();
    setSaved(
      await (link
        ? portalLinks.refreshToken(link.uid, { expires_at })
        : portalLinks.create({ name: name.trim(), owner_id: owner.trim(), can_manage_endpoint: isManaging, expires_at })),
    );
    onSaved();
  });
  const title = link ? `New URL for ${link.name}` : 'New portal link';
  if (saved) {
    return (
      <Dialog title={title} onClose={onClose} actions={<Button onPress={onClose}>Done</Button>}>
        <NewSecret what={saved.url === null ? 'token' : 'URL'} secret={saved.url ?? saved.token}>
          <p>
            It opens the portal of <code>{saved.owner_id}</code> for anyone who has it. It expires{' '}
            <Time at={saved.expires_at} look="relative" />.
          </p>
        </NewSecret>
      </Dialog>
    );
  }
  const { error } = saving;
  return (
    <FormDialog title={title} verb={link ? 'Make the URL' : 'Create the link'} action={saving} onClose={onClose}>
      {link ? (
        <p>The present URL ends at once, also where it is open.</p>
      ) : (
        <>
          <TextField
            label="Name"
            hint="For this list and the audit log."
            value={name}
            onChange={setName}
            error={fieldError(error, 'name')}
            isRequired
            hasFocus
          />
          <TextField
            label="Owner id"
            hint="The link shows the endpoints that have this owner id, and no others."
            value={owner}
            onChange={setOwner}
            error={fieldError(error, 'owner_id')}
            isRequired
          />
          <Checkbox
            label="May manage endpoints"
            hint="Create, change, pause and delete them, and subscribe them to events that name no owner."
            isOn={isManaging}
            onChange={setManaging}
          />
        </>
      )}
      <ExpiryField options={LINK_EXPIRIES} value={expiry} onChange={setExpiry} error={fieldError(error, 'expires_at')} />
    </FormDialog>
  );
}
