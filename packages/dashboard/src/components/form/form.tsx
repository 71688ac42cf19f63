import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { Action } from '../../api/use-action.js';
import { Problem } from '../feedback/problem.js';
import { Button } from './button.js';

export interface FormProps {
  /** What the form does; `run` when it is submitted. */
  readonly action: Pick<Action<[]>, 'run' | 'isRunning' | 'error'>;
  /** On the button that does it: `Create the key`. Without one the form is only read. */
  readonly verb: string | undefined;
  readonly kind?: 'main' | 'danger' | 'plain';
  /** False until what is asked for is filled in. */
  readonly isReady?: boolean;
  /** Says which fields are required, for a form with many that are not. */
  readonly marksRequired?: boolean;
  /** Another way on after an error. */
  readonly remedy?: ComponentChildren;
  readonly onCancel?: () => void;
  /** Further buttons. */
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}

/** A form. What went wrong stands above its buttons, and the focus moves to the first field that it is about, also when that is folded away. */
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
        {/* Before the other, so that a dialog that asks whether to delete something begins here. */}
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
