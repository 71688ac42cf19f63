import type { CreatedPortalLink, PortalLink } from '@gateway/client';
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { api } from '../../api/client.js';
import { useAction } from '../../api/use-action.js';
import { useDraft, type Draft } from '../../api/use-draft.js';
import { NewSecret } from '../../components/data/new-secret.js';
import { Time } from '../../components/data/time.js';
import { toast } from '../../components/feedback/toast.js';
import { Button } from '../../components/layout/button.js';
import { Dialog } from '../../components/form/dialog.js';
import { Checkbox, fieldError, TextField } from '../../components/form/field.js';
import { FormDialog } from '../../components/form/form-dialog.js';
import { ExpiryField, type Expiry } from './expiry.js';
import { expiryOf, LINK_EXPIRIES } from './key-state.js';

interface LinkDialog {
  readonly onSaved: () => void;
  readonly onClose: () => void;
}

/** Creates a portal link, with the given owner preset, and shows its URL. */
export function NewLink({ owner, ...dialog }: LinkDialog & { readonly owner: string }) {
  const { values, set } = useDraft({ name: owner, owner_id: owner, can_manage_endpoint: false });
  const make = (expires_at: string) =>
    api().portalLinks.create({
      ...values,
      name: values.name.trim(),
      owner_id: values.owner_id.trim(),
      expires_at,
    });
  return (
    <UrlDialog {...dialog} title="New portal link" verb="Create the link" make={make}>
      {(error) => (
        <>
          <TextField
            label="Owner id"
            hint="The link shows the endpoints that have this owner id, and no others."
            value={values.owner_id}
            onChange={set('owner_id')}
            error={fieldError(error, 'owner_id')}
            isRequired
            hasFocus
          />
          <LinkFields draft={{ values, set }} error={error} />
        </>
      )}
    </UrlDialog>
  );
}

/** Replaces the URL of a portal link, and shows it. */
export function NewUrl({ link, ...dialog }: LinkDialog & { readonly link: PortalLink }) {
  const make = (expires_at: string) => api().portalLinks.refreshToken(link.uid, { expires_at });
  return (
    <UrlDialog {...dialog} title={`New URL for ${link.name}`} verb="Make the URL" make={make}>
      {() => <p>The present URL ends at once, also where it is open.</p>}
    </UrlDialog>
  );
}

export function EditLink({ link, onSaved, onClose }: LinkDialog & { readonly link: PortalLink }) {
  const draft = useDraft({ name: link.name, can_manage_endpoint: link.can_manage_endpoint });
  const saving = useAction(async () => {
    const { name } = await api().portalLinks.update(link.uid, {
      ...draft.values,
      name: draft.values.name.trim(),
    });
    toast(`${name} was changed.`);
    onSaved();
    onClose();
  });
  return (
    <FormDialog title={`Edit ${link.name}`} verb="Save" action={saving} onClose={onClose}>
      <p>
        It opens the portal of <code>{link.owner_id}</code>. Its URL stays, and what it allows
        changes at once.
      </p>
      <LinkFields draft={draft} error={saving.error} />
    </FormDialog>
  );
}

function LinkFields({
  draft: { values, set },
  error,
}: {
  readonly draft: Pick<Draft<Pick<PortalLink, 'name' | 'can_manage_endpoint'>>, 'values' | 'set'>;
  readonly error: Error | undefined;
}) {
  return (
    <>
      <TextField
        label="Name"
        hint="For this list and the audit log."
        value={values.name}
        onChange={set('name')}
        error={fieldError(error, 'name')}
        isRequired
      />
      <Checkbox
        label="May manage endpoints"
        hint="Create, change, pause and delete them, and subscribe them to events that name no owner."
        isOn={values.can_manage_endpoint}
        onChange={set('can_manage_endpoint')}
      />
    </>
  );
}

/** Asks for the lifetime of a URL, creates it and shows it. */
function UrlDialog({
  title,
  verb,
  make,
  onSaved,
  onClose,
  children,
}: LinkDialog & {
  readonly title: string;
  readonly verb: string;
  readonly make: (expiresAt: string) => Promise<CreatedPortalLink>;
  readonly children: (error: Error | undefined) => ComponentChildren;
}) {
  const [expiry, setExpiry] = useState<Expiry>({ choice: LINK_EXPIRIES[0][0], time: '' });
  const [made, setMade] = useState<CreatedPortalLink>();
  const making = useAction(async () => {
    setMade(await make(expiryOf(expiry.choice, expiry.time) ?? ''));
    onSaved();
  });
  if (made) {
    return (
      <Dialog title={title} onClose={onClose} actions={<Button onPress={onClose}>Done</Button>}>
        <NewSecret what={made.url === null ? 'token' : 'URL'} secret={made.url ?? made.token}>
          <p>
            It opens the portal of <code>{made.owner_id}</code> for anyone who has it. It expires{' '}
            <Time at={made.expires_at} look="relative" />.
          </p>
        </NewSecret>
      </Dialog>
    );
  }
  return (
    <FormDialog title={title} verb={verb} action={making} onClose={onClose}>
      {children(making.error)}
      <ExpiryField
        options={LINK_EXPIRIES}
        value={expiry}
        onChange={setExpiry}
        error={fieldError(making.error, 'expires_at')}
      />
    </FormDialog>
  );
}
