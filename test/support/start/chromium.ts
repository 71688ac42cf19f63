import { have, installed } from './packages.js';

export interface Browser {
  readonly program: string;
}

/**
 * Returns the system's Chromium, else Debian's shell for tests: it has no window and needs a fifth
 * less CPU.
 * @throws `Unavailable` with installation instructions
 */
export function chromiumProgram(): Browser {
  const found = ['chromium-headless-shell', 'chromium', 'chromium-browser'].find(have);
  if (found) return { program: found };
  const program = 'chromium-headless-shell';
  installed(program, [program], 'for the tests of the dashboard');
  return { program };
}
