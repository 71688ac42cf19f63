import type { PersonalKey } from '@gateway/client';
import { useState } from 'preact/hooks';
import { useAction } from '../../api/use-action.js';
import { toast } from '../../components/feedback/toast.js';
import { FormDialog } from '../../components/form/form-dialog.js';
import { draftOf, fieldsOf, KeyFields } from './key-fields.js';
import type { KeyRing } from './key-state.js';

export function EditKey({
  ring,
  row,
  onClose,
}: {
  readonly ring: KeyRing;
  readonly row: PersonalKey;
  readonly onClose: () => void;
}) {
  const [draft, setDraft] = useState(draftOf(row, ring));
  const saving = useAction(async () => {
    await ring.update(row.uid, fieldsOf(draft));
    toast(`${row.name} was changed.`);
    ring.list.refresh();
    onClose();
  });
  return (
    <FormDialog title={`Edit ${row.name}`} verb="Save the key" action={saving} onClose={onClose}>
      <KeyFields ring={ring} draft={draft} onChange={setDraft} error={saving.error} />
    </FormDialog>
  );
}
