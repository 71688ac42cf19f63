import { have, installed } from './packages.js';

/** The path of a browser to drive. */
export interface Browser {
  readonly program: string;
}

/**
 * The system's Chromium, else Debian's package.
 * @throws `Unavailable` with what a person has to install
 */
export function chromiumProgram(): Browser {
  if (have('chromium-browser') && !have('chromium')) return { program: 'chromium-browser' };
  installed('chromium', ['chromium'], 'for the tests of the dashboard');
  return { program: 'chromium' };
}
