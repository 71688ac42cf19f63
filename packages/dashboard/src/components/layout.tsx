import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { isPortal, projectHref, query, setQuery } from '../router/location.js';
import { brandName } from '../session/theme.js';
import { useShortcuts } from './shortcuts.js';

interface Look {
  /**
   * `main` is for the primary action of a page or dialog, `danger` for deletions; `quiet` has no
   * border.
   */
  readonly kind?: 'main' | 'danger' | 'quiet' | 'plain';
  readonly children: ComponentChildren;
  /** The accessible name, if the content cannot serve as one. */
  readonly label?: string | undefined;
  /**
   * Presses the button while it is shown. The shortcut help describes it with `label` or the text
   * content.
   */
  readonly keys?: string | undefined;
}

/** Disabled while `isRunning`, at the same size. */
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
  isRunning?: boolean;
  isDisabled?: boolean;
  /** For a toggle button. */
  isPressed?: boolean;
  type?: 'button' | 'submit';
  onPress?: (() => void) | undefined;
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
}: Look & { href: string }) {
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

type LabelledKey = Pick<Look, 'children'> & {
  readonly keys: string | undefined;
  readonly label: string | undefined;
};

function titleOf({ keys, label }: Omit<LabelledKey, 'children'>): string | undefined {
  return label ?? (keys ? `Key: ${keys}` : undefined);
}

/** Returns the ref for the element that the key clicks. */
function usePress<Pressed extends HTMLElement>({ keys, label, children }: LabelledKey) {
  const pressed = useRef<Pressed>(null);
  const name = label ?? (typeof children === 'string' ? children.replace(/…$/, '') : '');
  useShortcuts(keys ? [{ keys, label: name, run: () => pressed.current?.click() }] : []);
  return pressed;
}

/** Also opened by the key `n`. As in `<NewLink what="endpoint" path="/endpoints/new" />`. */
export function NewLink({ what, path }: { what: string; path: string }) {
  return (
    <ButtonLink kind="main" keys="n" href={projectHref(path)}>
      {`New ${what}`}
    </ButtonLink>
  );
}

/**
 * The heading is also the window title.
 *
 * @param props.isFull whether the page fills the window height, for a list that scrolls
 *   independently
 */
export function Page({
  title,
  above,
  actions,
  isFull = false,
  children,
}: {
  title: string;
  /** The parent of the page, such as a link to the list. */
  above?: ComponentChildren;
  actions?: ComponentChildren;
  isFull?: boolean;
  children: ComponentChildren;
}) {
  useEffect(() => {
    document.title = `${title} · ${isPortal.value ? 'Webhooks' : brandName}`;
  }, [title]);
  return (
    <div class={`page${isFull ? ' full' : ''}`}>
      <header class="page-head">
        <div>
          {above && <p class="page-above">{above}</p>}
          <h1>{title}</h1>
        </div>
        {actions && <div class="page-actions">{actions}</div>}
      </header>
      {children}
    </div>
  );
}

export function Panel({
  title,
  actions,
  children,
}: {
  title: string;
  actions?: ComponentChildren;
  children: ComponentChildren;
}) {
  const id = useId();
  return (
    <section class="panel" aria-labelledby={id}>
      <div class="panel-head">
        <h2 id={id}>{title}</h2>
        {actions}
      </div>
      {children}
    </section>
  );
}

/** The query parameter called `name` contains the selected tab. */
export function Tabs({
  name,
  label,
  tabs,
}: {
  name: string;
  label: string;
  /** The first tab needs no query parameter. */
  tabs: readonly (readonly [value: string, label: string])[];
}) {
  const shown = tabValue(name, tabs);
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(([value, text], index) => (
        <button
          key={value}
          type="button"
          aria-current={value === shown ? 'true' : undefined}
          onClick={() => setQuery({ [name]: index === 0 ? undefined : value })}
        >
          {text}
        </button>
      ))}
    </nav>
  );
}

export function tabValue(
  name: string,
  tabs: readonly (readonly [value: string, label: string])[],
): string {
  const asked = query.value.get(name);
  return tabs.find(([value]) => value === asked)?.[0] ?? tabs[0]?.[0] ?? '';
}
