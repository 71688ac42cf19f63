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

/** Within the project. */
export function Link({
  to,
  label,
  children,
}: {
  to: string;
  label?: string;
  children: ComponentChildren;
}) {
  return (
    <a href={projectHref(to)} aria-label={label}>
      {children}
    </a>
  );
}

/** `to` is within the project. */
export function ButtonLink({
  kind = 'plain',
  children,
  label,
  keys,
  to = '',
  href = projectHref(to),
}: Look & { to?: string; href?: string }) {
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

/**
 * The heading is also the window title.
 *
 * @param props.isFull whether the page fills the window height, for a list that scrolls
 *   independently
 */
export function Page({
  title,
  list,
  above = list && <a href={projectHref(listPath(list))}>{list}</a>,
  actions,
  isFull = false,
  children,
}: {
  title: string;
  /** The title of the list that the page belongs to, such as `Event types`. */
  list?: string | undefined;
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

/** Within the project, such as `/event-types`. */
export function listPath(title: string): string {
  return `/${title.toLowerCase().replace(' ', '-')}`;
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

type TabLinks = readonly (readonly [name: string, label: string, to: string])[];

export function LinkTabs({ label, tabs, shown }: { label: string; tabs: TabLinks; shown: string }) {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(([name, text, to]) => (
        <a key={name} href={projectHref(to)} aria-current={name === shown ? 'page' : undefined}>
          {text}
        </a>
      ))}
    </nav>
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
