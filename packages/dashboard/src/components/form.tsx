import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { useAction, type Action } from '../api/change.js';
import { Problem, toastError } from './feedback.js';
import { Button } from './layout.js';

export interface FormProps {
  /** Run on submit. Its error is shown above the buttons. */
  readonly action: Pick<Action<[]>, 'run' | 'isRunning' | 'error'>;
  /** Such as `Create key`. Undefined makes the form read-only. */
  readonly verb: string | undefined;
  readonly kind?: 'main' | 'danger' | 'plain';
  /** False until the required fields are filled in. */
  readonly isReady?: boolean;
  /** For forms with many optional fields. */
  readonly marksRequired?: boolean;
  /** Shown with an error, to offer another way to continue. */
  readonly remedy?: ComponentChildren;
  readonly onCancel?: () => void;
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}

/**
 * The error is shown above the buttons, and the first invalid field gets the focus, even in a
 * closed section.
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

/** Open while rendered. Escape and a click outside call `onClose`. */
export function Dialog({
  title,
  children,
  actions,
  onClose,
}: {
  title: string;
  children: ComponentChildren;
  actions?: ComponentChildren;
  onClose: () => void;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const it = dialog.current;
    const opener = document.activeElement;
    it?.showModal();
    return () => {
      it?.close();
      if (opener instanceof HTMLElement) opener.focus();
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      class="dialog"
      aria-labelledby={heading}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => event.target === dialog.current && onClose()}
    >
      <div class="dialog-content">
        <h2 id={heading}>{title}</h2>
        {children}
        {actions && <div class="dialog-actions">{actions}</div>}
      </div>
    </dialog>
  );
}

export function FormDialog({
  title,
  onClose,
  ...form
}: Omit<FormProps, 'onCancel'> & { title: string; onClose: () => void }) {
  return (
    <Dialog title={title} onClose={onClose}>
      <Form {...form} onCancel={onClose} />
    </Dialog>
  );
}

/**
 * Asks for confirmation.
 *
 * @param props.label such as `Delete…`
 * @param props.spoken the accessible name if the label depends on its surroundings, such as `Delete
 *   the key ci`
 * @param props.isReady false until the required fields are filled in
 * @param props.verb the text of the button that confirms, such as `Delete`
 * @param props.children the consequences of the action
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
  label: string;
  spoken?: string;
  title: string;
  verb: string;
  kind?: 'danger' | 'main';
  keys?: string;
  isReady?: boolean;
  work: () => Promise<unknown>;
  children: ComponentChildren;
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

/** Acts without confirmation and shows errors in a toast. */
export function ActionButton({
  work,
  ...look
}: Omit<Parameters<typeof Button>[0], 'type' | 'isRunning' | 'onPress'> & {
  work: () => Promise<unknown>;
}) {
  const { run, isRunning } = useAction(() => work().catch(toastError));
  return <Button {...look} isRunning={isRunning} onPress={run} />;
}
