import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { useAction } from '../api/change.js';
import { accountApi } from '../api/client.js';
import { toast } from '../components/feedback.js';
import { TextField } from '../components/field.js';
import { Form, FormDialog } from '../components/form.js';
import { Button } from '../components/layout.js';
import { session } from '../session/session.js';

/** Asks for the e-mail address to which a link is sent. */
export function ForgotPassword() {
  const [isOpen, setOpen] = useState(false);
  const [email, setEmail] = useState('');
  const action = useAction(async () => {
    await accountApi().auth.forgotPassword({ email: email.trim() });
    toast('If a user has this address, a link is on its way.');
    setOpen(false);
  });
  return (
    <>
      <Button kind="quiet" onPress={() => setOpen(true)}>
        Forgot your password?
      </Button>
      {isOpen && (
        <FormDialog
          title="Choose another password"
          verb="Send the link"
          action={action}
          onClose={() => setOpen(false)}
        >
          <TextField
            label="Email"
            hint="A link arrives there. It is valid for an hour."
            type="email"
            autocomplete="username"
            value={email}
            onChange={setEmail}
            isRequired
            hasFocus
          />
        </FormDialog>
      )}
    </>
  );
}

/** The page of a link that was sent to a user who forgot the password. */
export function ResetPassword({ token }: { token: string }) {
  const [password, setPassword] = useState('');
  const action = useAction(async () => {
    await accountApi().auth.resetPassword({ token, password });
    // The sessions of the user have ended, also in this browser.
    session.value = null;
    leave();
    toast('Your password is changed. Sign in with it.');
  });
  useEffect(() => {
    document.title = 'Choose another password · Gateway';
  }, []);
  return (
    <main class="sign-in">
      <div class="form">
        <h1>Choose another password</h1>
        <Form action={action} verb="Change password">
          <TextField
            label="New password"
            hint="At least 12 characters. All your sessions end."
            type="password"
            autocomplete="new-password"
            value={password}
            onChange={setPassword}
            isRequired
            hasFocus
          />
        </Form>
        <Button kind="quiet" onPress={leave}>
          Sign in instead
        </Button>
      </div>
    </main>
  );
}

/** The token of the link that opened the dashboard (`#password-reset=<token>`). */
export const resetToken = signal(read());

function read(): string | undefined {
  return typeof location === 'undefined'
    ? undefined
    : /^#password-reset=(.+)$/.exec(location.hash)?.[1];
}

/** Follows links opened while the dashboard is shown. */
export function watchResets(): void {
  addEventListener('hashchange', () => (resetToken.value = read()));
}

/** Removes the token from the address bar and the history. */
function leave(): void {
  history.replaceState(null, '', location.pathname + location.search);
  resetToken.value = undefined;
}
