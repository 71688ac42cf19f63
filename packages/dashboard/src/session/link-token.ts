import { signal } from '@preact/signals';

/**
 * The token of a link that opens the dashboard, such as `#invitation=<token>`. It follows links
 * opened while the dashboard is shown.
 */
export function linkToken(name: string) {
  const read = () =>
    typeof location === 'undefined'
      ? undefined
      : new RegExp(`^#${name}=(.+)$`).exec(location.hash)?.[1];
  const token = signal(read());
  return {
    token,
    watch(): void {
      addEventListener('hashchange', () => (token.value = read()));
    },
    /** Removes the token from the address bar and the history. */
    leave(): void {
      history.replaceState(null, '', location.pathname + location.search);
      token.value = undefined;
    },
  };
}

export const invitationLink = linkToken('invitation');
export const resetLink = linkToken('password-reset');
