import { storeOf } from '../router/storage.js';

const PLACE = /\/portal\/([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(\/|$)/;
/** Per tab: another tab needs the link again. */
const store = storeOf('sessionStorage');

/**
 * Token and theme from the fragment of the portal link, current or stored. Undefined outside the
 * portal.
 */
export function portalLink(): URLSearchParams | undefined {
  const [, project] = PLACE.exec(location.pathname) ?? [];
  if (project === undefined) return undefined;
  const key = `gateway-portal-${project}`;
  const fragment = new URLSearchParams(location.hash.slice(1));
  if (!fragment.has('token')) return new URLSearchParams(store.get(key) ?? '');
  store.set(key, fragment.toString());
  return fragment;
}
