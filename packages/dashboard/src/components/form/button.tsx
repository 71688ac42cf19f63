import type { ComponentChildren } from 'preact';

interface Look {
  /** `main` is the one action of a page or dialog, `danger` deletes, `quiet` has no border. */
  readonly kind?: 'main' | 'danger' | 'quiet' | 'plain';
  readonly children: ComponentChildren;
  /** For a button whose content does not say what it does. */
  readonly label?: string;
  /** The key that does the same. */
  readonly keys?: string;
}

/** A button; one with `isRunning` cannot be pressed again, and keeps its size. */
export function Button({
  kind = 'plain',
  children,
  label,
  keys,
  isRunning = false,
  isDisabled = false,
  isPressed,
  type = 'button',
  onPress,
}: Look & {
  readonly isRunning?: boolean;
  readonly isDisabled?: boolean;
  /** Of a button that switches something. */
  readonly isPressed?: boolean;
  readonly type?: 'button' | 'submit';
  readonly onPress?: (() => void) | undefined;
}) {
  return (
    <button
      type={type}
      class={`button ${kind}${isRunning ? ' running' : ''}`}
      disabled={isDisabled || isRunning}
      aria-label={label}
      title={label ?? (keys ? `Key: ${keys}` : undefined)}
      aria-pressed={isPressed}
      aria-keyshortcuts={keys}
      onClick={onPress}
    >
      {children}
    </button>
  );
}

/** A link that looks like a button. */
export function ButtonLink({ kind = 'plain', children, label, href }: Look & { readonly href: string }) {
  return (
    <a class={`button ${kind}`} href={href} aria-label={label} title={label}>
      {children}
    </a>
  );
}
