import { computed, signal } from '@preact/signals';

/**
 * Derived from the location of the bundle, `<root>/assets`, so it is correct wherever the server is
 * mounted.
 */
export const root = new URL('..', import.meta.url).pathname.replace(/\/$/, '');

interface Address {
  readonly path: string;
  readonly search: string;
}

const place = signal<Address>(
  typeof location === 'undefined' ? { path: '/', search: '' } : current(),
);

export const path = computed(() => place.value.path);

/** Contains the filters, so that links and the back button restore them. */
export const query = computed(() => new URLSearchParams(place.value.search));

/** Empty if the parameter is missing. */
export function param(name: string): string {
  return query.value.get(name) ?? '';
}

function current(): Address {
  const { pathname, search } = location;
  return { path: pathname.slice(root.length) || '/', search };
}

/** As in `href('/projects/…')`. */
export function href(to: string): string {
  return root + to;
}

/** Unlike `//host`, stays on this host. */
export function isOwnPath(to: string): boolean {
  return /^\/(?![/\\])/.test(to);
}

/** With `replace`, adds no entry to the browser's history. */
export function navigate(to: string, { replace = false } = {}): void {
  const before = place.value.path;
  history[replace ? 'replaceState' : 'pushState'](null, '', href(to));
  place.value = current();
  if (place.value.path !== before) scrollTo(0, 0);
}

/** Undefined or empty parameters are removed. */
export function setQuery(
  changes: Readonly<Record<string, string | readonly string[] | undefined>>,
  { replace = false } = {},
): void {
  const next = new URLSearchParams(place.value.search);
  for (const [name, value] of Object.entries(changes)) {
    next.delete(name);
    for (const one of [value ?? []].flat()) if (one !== '') next.append(name, one);
  }
  const search = next.toString();
  if (search !== new URLSearchParams(place.value.search).toString())
    navigate(place.value.path + (search ? `?${search}` : ''), { replace });
}

export function startRouter(): void {
  addEventListener('popstate', () => (place.value = current()));
  document.addEventListener('click', (event) => {
    const link = (event.target as Element).closest?.('a');
    if (!link || !isPlainClick(event) || link.target || link.hasAttribute('download')) return;
    const { origin, pathname, search, hash } = new URL(link.href, location.href);
    const isPage =
      origin === location.origin &&
      `${pathname}/`.startsWith(`${root}/`) &&
      !pathname.startsWith(`${root}/api/`) &&
      !hash;
    // Links between dashboard and portal reload the document, because only the portal's policy
    // allows framing.
    const isOtherPart =
      pathname.startsWith(`${root}/portal/`) !== location.pathname.startsWith(`${root}/portal/`);
    if (!isPage || isOtherPart || link.getAttribute('href')?.startsWith('#')) return;
    event.preventDefault();
    navigate((pathname.slice(root.length) || '/') + search);
  });
}

function isPlainClick(event: MouseEvent): boolean {
  return (
    !event.defaultPrevented &&
    event.button === 0 &&
    !event.metaKey &&
    !event.ctrlKey &&
    !event.shiftKey &&
    !event.altKey
  );
}

/** In the dashboard or in an endpoint owner's portal. */
const PROJECT_PLACE = /^\/(projects|portal)\/([^/]+)/;
const projectPlace = computed(() => PROJECT_PLACE.exec(path.value));

export const projectId = computed(() => projectPlace.value?.[2]);

export const isPortal = computed(() => projectPlace.value?.[1] === 'portal');

/** In the current project or its portal, as in `projectPath('/events')`. */
export function projectPath(to: string): string {
  return `/${isPortal.value ? 'portal' : 'projects'}/${projectId.value ?? ''}${to}`;
}

export function projectHref(to: string): string {
  return href(projectPath(to));
}
