import { signal } from '@preact/signals';

/** The token of the link that the dashboard was opened by: `#invitation=<token>`. */
export const invitationToken = signal(read());

function read(): string | undefined {
  return typeof location === 'undefined' ? undefined : /^#invitation=(.+)$/.exec(location.hash)?.[1];
}

/** Follows links that are opened while the dashboard is shown. */
export function watchInvitations(): void {
  addEventListener('hashchange', () => (invitationToken.value = read()));
}

/** The link is done with: its token leaves the address bar and the history. */
export function leaveInvitation(): void {
  history.replaceState(null, '', location.pathname + location.search);
  invitationToken.value = undefined;
}
