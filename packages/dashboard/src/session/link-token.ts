import { signal } from '@preact/signals';

/** Such as `#invitation=<token>`. It follows links opened while the dashboard is shown. */
function linkToken(name: string) {
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
    /** From the address bar and the history. */
    leave(): void {
      history.replaceState(null, '', location.pathname + location.search);
      token.value = undefined;
    },
  };
}

export const invitationLink = linkToken('invitation');
export const resetLink = linkToken('password-reset');
