import type { PersonalKey } from '@gateway/client';
import { useState } from 'preact/hooks';
import { useAction } from '../../api/use-action.js';
import { NewSecret } from '../../components/data/new-secret.js';
import { Problem } from '../../components/feedback/problem.js';
import { toast } from '../../components/feedback/toast.js';
import { Button } from '../../components/layout/button.js';
import { Dialog } from '../../components/form/dialog.js';
import { fieldError } from '../../components/form/field.js';
import { FormDialog } from '../../components/form/form-dialog.js';
import { ExpiryField, type Expiry } from './expiry.js';
import { draftOf, fieldsOf, KeyFields } from './key-fields.js';
import { EXPIRIES, expiryOf, type KeyRing } from './key-state.js';

/**
 * Creates and shows a key. A key that `replaces` another copies its name, role and scopes, and then
 * offers to revoke the old key.
 */
export function NewKey({
  ring,
  replaces,
  onClose,
}: {
  readonly ring: KeyRing;
  readonly replaces?: PersonalKey;
  readonly onClose: () => void;
}) {
  const [draft, setDraft] = useState(draftOf(replaces, ring));
  const [expiry, setExpiry] = useState<Expiry>({ choice: EXPIRIES[0][0], time: '' });
  const [key, setKey] = useState<string>();
  const creating = useAction(async () => {
    const created = await ring.create({
      ...fieldsOf(draft),
      expires_at: expiryOf(expiry.choice, expiry.time),
    });
    setKey(created.key);
    ring.list.refresh();
  });
  const revoking = useAction(async () => {
    await ring.revoke(replaces?.uid ?? '');
    toast('The old key was revoked.');
    ring.list.refresh();
    onClose();
  });
  const title = replaces ? `Rotate ${replaces.name}` : 'New API key';
  if (key !== undefined) {
    return (
      <Dialog
        title={title}
        onClose={onClose}
        actions={
          <>
            {replaces && (
              <Button kind="danger" isRunning={revoking.isRunning} onPress={revoking.run}>
                Revoke the old key
              </Button>
            )}
            <Button onPress={onClose}>{replaces ? 'Revoke it later' : 'Done'}</Button>
          </>
        }
      >
        <NewSecret what="API key" secret={key} />
        {replaces && (
          <p>
            Both keys work until the old one, <code>{replaces.mask}</code>, is revoked: give the new
            one to what uses it first.
          </p>
        )}
        {revoking.error && <Problem error={revoking.error} />}
      </Dialog>
    );
  }
  return (
    <FormDialog title={title} verb="Create the key" action={creating} onClose={onClose}>
      <KeyFields ring={ring} draft={draft} onChange={setDraft} error={creating.error} />
      <ExpiryField
        options={EXPIRIES}
        value={expiry}
        onChange={setExpiry}
        error={fieldError(creating.error, 'expires_at')}
      />
    </FormDialog>
  );
}
