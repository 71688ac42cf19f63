import { useEffect, useState } from 'preact/hooks';
import { useAction } from '../api/use-action.js';
import { Problem } from '../components/feedback/problem.js';
import { Button } from '../components/form/button.js';
import { TextField } from '../components/form/field.js';
import { signIn } from '../session/session.js';

export function SignIn() {
  const [email, setEmail] = useState('');
  const [password, setPassword] = useState('');
  const action = useAction(() => signIn(email, password));
  useEffect(() => {
    document.title = 'Sign in · Gateway';
  }, []);
  return (
    <main class="sign-in">
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          action.run();
        }}
      >
        <h1>Sign in to Gateway</h1>
        {action.error && <Problem error={action.error} />}
        <TextField label="Email" type="email" name="email" autocomplete="username" value={email} onChange={setEmail} isRequired hasFocus />
        <TextField
          label="Password"
          type="password"
          name="password"
          autocomplete="current-password"
          value={password}
          onChange={setPassword}
          isRequired
        />
        <Button kind="main" type="submit" isRunning={action.isRunning}>
          Sign in
        </Button>
        <p class="muted">
          The first user is created by <code>gateway bootstrap</code>, which prints the password.
        </p>
      </form>
    </main>
  );
}
