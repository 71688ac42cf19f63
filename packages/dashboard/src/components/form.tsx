import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { useAction, useDraft, type Action, type Draft } from '../api/change.js';
import { navigate, projectPath } from '../router/location.js';
import { Problem, toast, toastError } from './feedback.js';
import { textsOf } from './field.js';
import { Button } from './layout.js';

interface Submission extends Pick<Action<[]>, 'run' | 'isRunning' | 'error'> {
  /** Shown above the buttons, such as a conflict with another user. */
  readonly notice?: ComponentChildren;
}

export interface FormState<Values extends object> extends Draft<Values>, Submission {
  readonly clear: () => void;
  readonly text: ReturnType<typeof textsOf<Values>>;
}

/** The values that the user types, and their submission. */
export function useForm<Values extends object>(
  initial: Values,
  submit: (values: Values) => Promise<unknown>,
): FormState<Values> {
  const draft = useDraft(initial);
  const action = useAction(() => submit(draft.values));
  return { ...draft, ...action, text: textsOf(draft, action.error) };
}

export interface FormProps {
  readonly action: Submission;
  /** Such as `Create key`. Undefined makes the form read-only. */
  readonly verb: string | undefined;
  readonly kind?: 'main' | 'danger' | 'plain';
  readonly isReady?: boolean;
  readonly marksRequired?: boolean;
  /** Shown with an error, to offer another way to continue. */
  readonly remedy?: ComponentChildren;
  readonly onCancel?: () => void;
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}

/** After an error, the first invalid field gets the focus, even in a closed section. */
export function Form({
  action: { run, isRunning, error, notice },
  verb,
  kind = 'main',
  isReady = true,
  marksRequired = false,
  remedy,
  onCancel,
  actions,
  children,
}: FormProps) {
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
      {notice}
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

/**
 * @param props.done replaces the form after it was submitted, such as a secret that is shown once
 * @param props.doneActions the buttons below it
 */
export function FormDialog({
  title,
  onClose,
  done,
  doneActions = <Button onPress={onClose}>Done</Button>,
  ...form
}: Omit<FormProps, 'onCancel'> & {
  title: string;
  onClose: () => void;
  done?: ComponentChildren;
  doneActions?: ComponentChildren;
}) {
  return (
    <Dialog title={title} onClose={onClose} actions={done && doneActions}>
      {done || <Form {...form} onCancel={onClose} />}
    </Dialog>
  );
}

type Look = Omit<Parameters<typeof Button>[0], 'type' | 'onPress'>;

/** Opens a dialog, which gets the function that closes it. */
export function DialogButton({
  dialog,
  ...look
}: Look & { dialog: (close: () => void) => ComponentChildren }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button {...look} onPress={() => setOpen(true)} />
      {isOpen && dialog(() => setOpen(false))}
    </>
  );
}

interface Work {
  readonly work: () => Promise<unknown>;
  /** Shown in a toast after the work. */
  readonly told?: string | undefined;
  readonly onDone?: (() => unknown) | undefined;
}

const workOf =
  ({ work, told, onDone }: Work) =>
  async () => {
    await work();
    if (told) toast(told);
    await onDone?.();
  };

/**
 * Asks for confirmation.
 *
 * @param props.verb such as `Delete`, also in the label of the button, `Delete…`
 * @param props.what such as the name of a resource
 * @param props.isRow the accessible name includes `what`, because other rows have the same button
 * @param props.isReady false until the required fields are filled in
 * @param props.children the consequences of the action
 */
export function ConfirmButton({
  verb,
  what,
  label = `${verb}…`,
  title = `${verb} ${what}?`,
  isRow = false,
  ...confirmation
}: { verb: string; what: string; label?: string; title?: string; isRow?: boolean } & Omit<
  Parameters<typeof Confirmation>[0],
  'onClose' | 'title'
>) {
  return (
    <DialogButton
      label={isRow ? `${label.slice(0, -1)} ${what}` : undefined}
      dialog={(close) => (
        <Confirmation {...confirmation} verb={verb} title={title} onClose={close} />
      )}
    >
      {label}
    </DialogButton>
  );
}

function Confirmation({
  work,
  told,
  onDone,
  kind = 'danger',
  onClose,
  ...form
}: Work &
  Pick<FormProps, 'verb' | 'kind' | 'isReady' | 'children'> & {
    title: string;
    onClose: () => void;
  }) {
  const action = useAction(async () => {
    await workOf({ work, told, onDone })();
    onClose();
  });
  return <FormDialog {...form} kind={kind} action={action} onClose={onClose} />;
}

/** On the page of a resource, which leads back to the list. */
export function DeleteButton({
  name,
  list,
  ...confirmation
}: { name: string; list: string } & Pick<Parameters<typeof Confirmation>[0], 'work' | 'children'>) {
  return (
    <ConfirmButton
      {...confirmation}
      verb="Delete"
      what={name}
      told={`${name} was deleted.`}
      onDone={() => navigate(projectPath(list))}
    />
  );
}

/** Acts without confirmation and shows errors in a toast. */
export function ActionButton({ work, told, onDone, ...look }: Omit<Look, 'isRunning'> & Work) {
  const { run, isRunning } = useAction(() => workOf({ work, told, onDone })().catch(toastError));
  return <Button {...look} isRunning={isRunning} onPress={run} />;
}
