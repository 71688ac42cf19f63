import { have, installed } from './packages.js';

export interface Browser {
  readonly program: string;
}

/**
 * Returns the system's Chromium, else Debian's package.
 * @throws `Unavailable` with installation instructions
 */
export function chromiumProgram(): Browser {
  if (have('chromium-browser') && !have('chromium')) return { program: 'chromium-browser' };
  installed('chromium', ['chromium'], 'for the tests of the dashboard');
  return { program: 'chromium' };
}
