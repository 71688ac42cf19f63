import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import { useShortcuts } from '../../keyboard/use-shortcuts.js';

interface Look {
  /** `main` is the primary action of a page or dialog, `danger` deletes, `quiet` has no border. */
  readonly kind?: 'main' | 'danger' | 'quiet' | 'plain';
  readonly children: ComponentChildren;
  /** The accessible name, if the content is not one. */
  readonly label?: string | undefined;
  /**
   * The key that presses the button while it is shown. The help names it by `label`, or by a text
   * content.
   */
  readonly keys?: string | undefined;
}

/** A button. While `isRunning` it cannot be pressed, and keeps its size. */
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
  /** State of a toggle button. */
  readonly isPressed?: boolean;
  readonly type?: 'button' | 'submit';
  readonly onPress?: (() => void) | undefined;
}) {
  return (
    <button
      ref={usePress<HTMLButtonElement>({ keys, label, children })}
      type={type}
      class={`button ${kind}${isRunning ? ' running' : ''}`}
      disabled={isDisabled || isRunning}
      aria-label={label}
      title={titleOf({ keys, label })}
      aria-pressed={isPressed}
      aria-keyshortcuts={keys}
      onClick={onPress}
    >
      {children}
    </button>
  );
}

export function ButtonLink({
  kind = 'plain',
  children,
  label,
  keys,
  href,
}: Look & { readonly href: string }) {
  return (
    <a
      ref={usePress<HTMLAnchorElement>({ keys, label, children })}
      class={`button ${kind}`}
      href={href}
      aria-label={label}
      title={titleOf({ keys, label })}
      aria-keyshortcuts={keys}
    >
      {children}
    </a>
  );
}

type Named = Pick<Look, 'children'> & {
  readonly keys: string | undefined;
  readonly label: string | undefined;
};

function titleOf({ keys, label }: Omit<Named, 'children'>): string | undefined {
  return label ?? (keys ? `Key: ${keys}` : undefined);
}

/** Returns the ref of the element that the key presses. */
function usePress<Pressed extends HTMLElement>({ keys, label, children }: Named) {
  const pressed = useRef<Pressed>(null);
  const name = label ?? (typeof children === 'string' ? children.replace(/…$/, '') : '');
  useShortcuts(keys ? [{ keys, label: name, run: () => pressed.current?.click() }] : []);
  return pressed;
}
