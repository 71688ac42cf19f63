import { useEffect, useState } from 'preact/hooks';
import { useAction } from '../api/change.js';
import { accountApi } from '../api/client.js';
import { toast } from '../components/feedback.js';
import { TextField } from '../components/field.js';
import { Form, FormDialog } from '../components/form.js';
import { Button } from '../components/layout.js';
import { resetLink } from '../session/link-token.js';
import { session } from '../session/session.js';
import { brandName } from '../session/theme.js';

export function ForgotPassword() {
  const [isOpen, setOpen] = useState(false);
  const [email, setEmail] = useState('');
  const action = useAction(async () => {
    await accountApi().auth.forgotPassword({ email: email.trim() });
    toast('If an account uses this address, a reset link has been sent to it.');
    setOpen(false);
  });
  return (
    <>
      <Button kind="quiet" onPress={() => setOpen(true)}>
        Forgot your password?
      </Button>
      {isOpen && (
        <FormDialog
          title="Reset your password"
          verb="Send reset link"
          action={action}
          onClose={() => setOpen(false)}
        >
          <TextField
            label="Email"
            hint="The reset link is valid for one hour."
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

export function ResetPassword({ token }: { token: string }) {
  const [password, setPassword] = useState('');
  const action = useAction(async () => {
    await accountApi().auth.resetPassword({ token, password });
    // The user's sessions have ended, also in this browser.
    session.value = null;
    resetLink.leave();
    toast('Password changed. Sign in with your new password.');
  });
  useEffect(() => {
    document.title = `Choose a new password · ${brandName}`;
  }, []);
  return (
    <main class="sign-in">
      <div class="form">
        <h1>Choose a new password</h1>
        <Form action={action} verb="Change password">
          <TextField
            label="New password"
            hint="At least 12 characters. This ends all your sessions."
            type="password"
            autocomplete="new-password"
            value={password}
            onChange={setPassword}
            isRequired
            hasFocus
          />
        </Form>
        <Button kind="quiet" onPress={resetLink.leave}>
          Sign in instead
        </Button>
      </div>
    </main>
  );
}
