import { Button } from '../components/layout/button.js';
import { isConnected } from '../api/client.js';
import { root } from '../router/location.js';
import { session, signOut } from '../session/session.js';
import { chooseTheme, theme, type Theme } from '../session/theme.js';
import { isHelpShown } from './help.js';

const NEXT: Readonly<Record<Theme, Theme>> = { system: 'light', light: 'dark', dark: 'system' };

export function Account() {
  return (
    <div class="account">
      <p class={`connection ${isConnected.value ? 'ok' : 'bad'}`} role="status">
        {isConnected.value ? 'Connected' : 'The server cannot be reached'}
      </p>
      <p class="account-user cut" title={session.value?.user.email}>
        {session.value?.user.email}
      </p>
      <div class="account-buttons">
        <Button
          kind="quiet"
          label={`Colours: ${theme.value}`}
          onPress={() => chooseTheme(NEXT[theme.value])}
        >
          {{ system: '◐', light: '☀', dark: '☾' }[theme.value]}
        </Button>
        <Button
          kind="quiet"
          label="Keyboard shortcuts"
          keys="?"
          onPress={() => (isHelpShown.value = true)}
        >
          ?
        </Button>
        <a class="button quiet" href={`${root}/api/v1/docs`} target="_blank" rel="noreferrer">
          API
        </a>
        <Button kind="quiet" onPress={() => void signOut()}>
          Sign out
        </Button>
      </div>
    </div>
  );
}
