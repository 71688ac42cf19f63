import { signal } from '@preact/signals';

/** The token of the link that opened the dashboard: `#invitation=<token>`. */
export const invitationToken = signal(read());

function read(): string | undefined {
  return typeof location === 'undefined'
    ? undefined
    : /^#invitation=(.+)$/.exec(location.hash)?.[1];
}

/** Follows invitation links opened while the dashboard is shown. */
export function watchInvitations(): void {
  addEventListener('hashchange', () => (invitationToken.value = read()));
}

/** Removes the token from the address bar and the history. */
export function leaveInvitation(): void {
  history.replaceState(null, '', location.pathname + location.search);
  invitationToken.value = undefined;
}
