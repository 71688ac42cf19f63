import { computed, signal } from '@preact/signals';

/** The prefix of all pages. The bundle is in `<root>/assets`, wherever the server is mounted. */
export const root = new URL('..', import.meta.url).pathname.replace(/\/$/, '');

interface Address {
  readonly path: string;
  readonly search: string;
}

const place = signal<Address>(
  typeof location === 'undefined' ? { path: '/', search: '' } : current(),
);

/** The path of the shown page, without the root. */
export const path = computed(() => place.value.path);

/**
 * The query of the shown page: it holds filters, so that links and the back button restore them.
 */
export const query = computed(() => new URLSearchParams(place.value.search));

/** A query parameter, such as a filter; empty if absent. */
export function param(name: string): string {
  return query.value.get(name) ?? '';
}

function current(): Address {
  const { pathname, search } = location;
  return { path: pathname.slice(root.length) || '/', search };
}

/** The address of a page, for a link: `href('/projects/…')`. */
export function href(to: string): string {
  return root + to;
}

/** True for the path of a page; false for another host, as in `//host`. */
export function isOwnPath(to: string): boolean {
  return /^\/(?![/\\])/.test(to);
}

/** Opens a page. `replace` adds no entry to the browser's history. */
export function navigate(to: string, { replace = false } = {}): void {
  const before = place.value.path;
  history[replace ? 'replaceState' : 'pushState'](null, '', href(to));
  place.value = current();
  if (place.value.path !== before) scrollTo(0, 0);
}

/** Sets query parameters of the current page; removes undefined and empty ones. */
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

/** Follows the address bar and the links of pages. */
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
    // The document's policy allows framing of the portal only.
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

/** A project page: of the dashboard, or of the portal for an endpoint owner. */
const PROJECT_PLACE = /^\/(projects|portal)\/([^/]+)/;
const projectPlace = computed(() => PROJECT_PLACE.exec(path.value));

/** Id of the shown project; undefined outside projects. */
export const projectId = computed(() => projectPlace.value?.[2]);

export const isPortal = computed(() => projectPlace.value?.[1] === 'portal');

/** Path of a page of the shown project or its portal: `projectPath('/events')`. */
export function projectPath(to: string): string {
  return `/${isPortal.value ? 'portal' : 'projects'}/${projectId.value ?? ''}${to}`;
}

export function projectHref(to: string): string {
  return href(projectPath(to));
}
