import { Dialog } from './dialog.js';
import { Form, type FormProps } from './form.js';

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
