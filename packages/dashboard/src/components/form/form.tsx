import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { Action } from '../../api/use-action.js';
import { Problem } from '../feedback/problem.js';
import { Button } from '../layout/button.js';

export interface FormProps {
  /** The form's submission: calls `run`. */
  readonly action: Pick<Action<[]>, 'run' | 'isRunning' | 'error'>;
  /** The submit button: `Create the key`. Undefined makes the form read-only. */
  readonly verb: string | undefined;
  readonly kind?: 'main' | 'danger' | 'plain';
  /** False until the required fields are filled in. */
  readonly isReady?: boolean;
  /** Marks required fields, for a form with many optional ones. */
  readonly marksRequired?: boolean;
  /** Shown with an error: another way to continue. */
  readonly remedy?: ComponentChildren;
  readonly onCancel?: () => void;
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}

/**
 * A form. Its error appears above the buttons, and the focus moves to the first field that the
 * error names, even if it is folded.
 */
export function Form({
  action,
  verb,
  kind = 'main',
  isReady = true,
  marksRequired = false,
  remedy,
  onCancel,
  actions,
  children,
}: FormProps) {
  const { run, isRunning, error } = action;
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (!error) return;
    const field = form.current?.querySelector<HTMLElement>('[aria-invalid]');
    const folded = field?.closest('details');
    if (folded) folded.open = true;
    if (field) field.focus();
    else form.current?.querySelector('.problem')?.scrollIntoView({ block: 'nearest' });
  }, [error]);
  return (
    <form
      ref={form}
      class={`form${marksRequired ? ' marks-required' : ''}`}
      onSubmit={(event) => {
        event.preventDefault();
        run();
      }}
    >
      {children}
      {error && <Problem error={error}>{remedy}</Problem>}
      <div class="form-actions">
        {/* Cancel comes first: the focus of a dialog that confirms a deletion starts here. */}
        {onCancel && <Button onPress={onCancel}>Cancel</Button>}
        {verb && (
          <Button kind={kind} type="submit" isRunning={isRunning} isDisabled={!isReady}>
            {verb}
          </Button>
        )}
        {actions}
      </div>
    </form>
  );
}
