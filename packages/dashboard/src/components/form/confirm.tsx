import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { useAction } from '../../api/use-action.js';
import { Button } from '../layout/button.js';
import { FormDialog } from './form-dialog.js';

/**
 * A button that asks for confirmation.
 *
 * @param props.label text of the button: `Delete…`
 * @param props.spoken accessible name where the label depends on its surroundings: `Delete the key
 * ci`
 * @param props.isReady false until the required fields are filled in
 * @param props.verb confirms: `Delete`
 * @param props.children consequences of the action
 */
export function ConfirmButton({
  label,
  spoken,
  title,
  verb,
  kind = 'danger',
  keys,
  isReady = true,
  work,
  children,
}: {
  readonly label: string;
  readonly spoken?: string;
  readonly title: string;
  readonly verb: string;
  readonly kind?: 'danger' | 'main';
  readonly keys?: string;
  readonly isReady?: boolean;
  readonly work: () => Promise<unknown>;
  readonly children: ComponentChildren;
}) {
  const [isOpen, setOpen] = useState(false);
  const action = useAction(async () => {
    await work();
    setOpen(false);
  });
  const close = () => {
    setOpen(false);
    action.clear();
  };
  return (
    <>
      <Button keys={keys} label={spoken} onPress={() => setOpen(true)}>
        {label}
      </Button>
      {isOpen && (
        <FormDialog
          title={title}
          verb={verb}
          kind={kind}
          isReady={isReady}
          action={action}
          onClose={close}
        >
          {children}
        </FormDialog>
      )}
    </>
  );
}
