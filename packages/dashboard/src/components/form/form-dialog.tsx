import { Dialog } from './dialog.js';
import { Form, type FormProps } from './form.js';

/** A dialog that asks before it acts, with the fields that the action needs. */
export function FormDialog({
  title,
  onClose,
  ...form
}: Omit<FormProps, 'onCancel'> & { readonly title: string; readonly onClose: () => void }) {
  return (
    <Dialog title={title} onClose={onClose}>
      <Form {...form} onCancel={onClose} />
    </Dialog>
  );
}
