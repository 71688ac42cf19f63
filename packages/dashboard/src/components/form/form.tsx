import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { Problem } from '../feedback/problem.js';

/**
 * A form. What went wrong stands above its buttons, and the focus moves to the first field that it is about, also when that is folded away.
 *
 * @param props.marksRequired says which fields are required, for a form with many that are not
 * @param props.remedy another way on after the error
 * @param props.actions its buttons
 */
export function Form({
  onSubmit,
  error,
  marksRequired = false,
  remedy,
  actions,
  children,
}: {
  readonly onSubmit: () => void;
  readonly error: Error | undefined;
  readonly marksRequired?: boolean;
  readonly remedy?: ComponentChildren;
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}) {
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
        onSubmit();
      }}
    >
      {children}
      {error && <Problem error={error}>{remedy}</Problem>}
      {actions && <div class="form-actions">{actions}</div>}
    </form>
  );
}
