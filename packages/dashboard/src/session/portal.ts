import { GatewayApiError, type Portal } from '@gateway/client';
import { effect, signal } from '@preact/signals';
import { api, forgetResources, refusals, setKey } from '../api/index.js';
import { portalLink } from './portal-theme.js';

/**
 * With the link's permissions. Undefined until the server responds; null if the link has expired or
 * is missing.
 */
export const portal = signal<Portal | null | undefined>(undefined);

export const portalProblem = signal<Error | undefined>(undefined);

/** Removes the token from the address bar. */
export async function openPortal(): Promise<void> {
  const token = portalLink()?.get('token');
  history.replaceState(null, '', location.pathname + location.search);
  portalProblem.value = undefined;
  if (!token) {
    end();
    return;
  }
  setKey(token);
  try {
    portal.value = await api().portal.get();
  } catch (error) {
    if (error instanceof GatewayApiError && [401, 403].includes(error.status)) end();
    else portalProblem.value = error as Error;
  }
}

/** The framing page is notified and can reopen the portal with another link. */
function end(): void {
  forgetResources();
  portal.value = null;
  if (parent !== window) parent.postMessage({ type: 'gateway.portal.ended' }, '*');
}

effect(() => {
  if (refusals.value > 0 && portal.peek()) end();
});

/** Reloads on a new link: in a frame, this changes only the fragment. */
export function followLinks(): void {
  addEventListener('hashchange', () => {
    if (new URLSearchParams(location.hash.slice(1)).has('token')) location.reload();
  });
}
