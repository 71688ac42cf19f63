import { effect, signal } from '@preact/signals';
import { GatewayApiError, type Portal } from '@gateway/client';
import { api, refusals, setKey } from '../api/client.js';
import { forgetResources } from '../api/use-resource.js';
import { portalLink } from './portal-link.js';

/** Whose portal is shown, and what its link allows; undefined before the server has answered, null when the link has ended or there is none. */
export const portal = signal<Portal | null | undefined>(undefined);

/** Why the server could not say whose portal it is. */
export const portalProblem = signal<Error | undefined>(undefined);

/** Opens the portal with the token of its link, and takes the token out of the address bar. */
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

/** The page around a frame may open the portal with another link. */
function end(): void {
  forgetResources();
  portal.value = null;
  if (parent !== window) parent.postMessage({ type: 'gateway.portal.ended' }, '*');
}

effect(() => {
  if (refusals.value > 0 && portal.peek()) end();
});

/** A frame that gets another link changes its fragment only. */
export function followLinks(): void {
  addEventListener('hashchange', () => {
    if (new URLSearchParams(location.hash.slice(1)).has('token')) location.reload();
  });
}
