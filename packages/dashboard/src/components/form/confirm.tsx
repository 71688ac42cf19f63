import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { useAction } from '../../api/use-action.js';
import { Button } from './button.js';
import { FormDialog } from './form-dialog.js';

/**
 * A button that asks before it acts.
 *
 * @param props.label of the button: `Delete…`
 * @param props.spoken says it for those who do not see what stands beside it: `Delete the key ci`
 * @param props.isReady false until what is asked for is filled in
 * @param props.verb of the button that does it: `Delete`
 * @param props.children what it means for others
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
        <FormDialog title={title} verb={verb} kind={kind} isReady={isReady} action={action} onClose={close}>
          {children}
        </FormDialog>
      )}
    </>
  );
}
