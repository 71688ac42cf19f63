import type { ComponentChildren } from 'preact';
import type { Action } from '../../api/use-action.js';
import { Button } from './button.js';
import { Dialog } from './dialog.js';
import { Form } from './form.js';

/**
 * A dialog that asks before it acts, with the fields that the action needs.
 *
 * @param props.verb on the button that does it: `Create the key`
 * @param props.isReady false until what is asked for is filled in
 */
export function FormDialog({
  title,
  verb,
  kind = 'main',
  isReady = true,
  action: { run, isRunning, error },
  onClose,
  children,
}: {
  readonly title: string;
  readonly verb: string;
  readonly kind?: 'danger' | 'main';
  readonly isReady?: boolean;
  readonly action: Pick<Action<[]>, 'run' | 'isRunning' | 'error'>;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}) {
  return (
    <Dialog title={title} onClose={onClose}>
      <Form
        onSubmit={run}
        error={error}
        actions={
          <>
            <Button onPress={onClose}>Cancel</Button>
            <Button kind={kind} type="submit" isRunning={isRunning} isDisabled={!isReady}>
              {verb}
            </Button>
          </>
        }
      >
        {children}
      </Form>
    </Dialog>
  );
}
