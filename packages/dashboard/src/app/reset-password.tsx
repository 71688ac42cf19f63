import { accountApi } from '../api/index.js';
import {
  Button,
  DialogButton,
  Form,
  FormDialog,
  TextField,
  toast,
  useForm,
} from '../components/index.js';
import { resetLink } from '../session/link-token.js';
import { session } from '../session/session.js';
import { SignedOut } from './signed-out.js';

export function ForgotPassword() {
  return (
    <DialogButton kind="quiet" dialog={(close) => <ResetRequest onClose={close} />}>
      Forgot your password?
    </DialogButton>
  );
}

function ResetRequest({ onClose }: { onClose: () => void }) {
  const form = useForm({ email: '' }, async ({ email }) => {
    await accountApi().auth.forgotPassword({ email: email.trim() });
    toast('If an account uses this address, a reset link has been sent to it.');
    onClose();
  });
  return (
    <FormDialog title="Reset your password" verb="Send reset link" action={form} onClose={onClose}>
      <TextField
        label="Email"
        hint="The reset link is valid for one hour."
        type="email"
        autocomplete="username"
        {...form.text('email')}
        isRequired
        hasFocus
      />
    </FormDialog>
  );
}

export function ResetPassword({ token }: { token: string }) {
  const form = useForm({ password: '' }, async ({ password }) => {
    await accountApi().auth.resetPassword({ token, password });
    // The user's sessions have ended, also in this browser.
    session.value = null;
    resetLink.leave();
    toast('Password changed. Sign in with your new password.');
  });
  return (
    <SignedOut title="Choose a new password">
      <Form action={form} verb="Change password">
        <TextField
          label="New password"
          hint="At least 12 characters. This ends all your sessions."
          type="password"
          autocomplete="new-password"
          {...form.text('password')}
          isRequired
          hasFocus
        />
      </Form>
      <Button kind="quiet" onPress={resetLink.leave}>
        Sign in instead
      </Button>
    </SignedOut>
  );
}
