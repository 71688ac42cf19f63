import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium, type Browser, type Locator, type Page } from 'playwright-core';
import * as assert from 'uvu/assert';
import { services } from '../support/services.js';
import { until } from '../support/until.js';

/** Screenshots for people; git ignores them. */
const pictures = fileURLToPath(new URL('../../.tests/pictures/', import.meta.url));

const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Window sizes that pages support. */
export const SIZES = {
  wide: { width: 1440, height: 900 },
  desktop: { width: 1280, height: 800 },
  phone: { width: 390, height: 844 },
} as const;

export interface Visit {
  readonly page: Page;
  /** Throws on script errors, blocked content or failed requests. */
  close(): Promise<void>;
}

let running: Promise<Browser> | undefined;
let closing: NodeJS.Timeout | undefined;

/** Returns the browser of this process, whose test files run one after the other. */
export function openBrowser(): Promise<Browser> {
  clearTimeout(closing);
  return (running ??= launch());
}

async function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath: await chromiumPath(),
    args: FLAGS,
    headless: true,
  });
}

/** Closes the pages of a test file and, unless another file opens it within a second, the browser. */
export async function closeBrowser(browser: Browser): Promise<void> {
  await Promise.all(browser.contexts().map((context) => context.close()));
  closing = setTimeout(() => {
    running = undefined;
    void browser.close();
  }, 1_000);
}

/** Returns the path of the installed Chromium. */
export async function chromiumPath(): Promise<string> {
  const { program } = await services.chromium();
  for (const folder of (process.env['PATH'] ?? '').split(':')) {
    const file = path.join(folder, program);
    try {
      readFileSync(file);
      return file;
    } catch {
      // not in this folder
    }
  }
  throw new Error(`${program} is not on the PATH`);
}

/**
 * Opens a page in a new profile.
 *
 * @param options.isPhone emulates a phone's size and touch
 * @param options.isWide emulates a large window
 * @param options.cookie of a session, `name=value`
 */
export async function visit(
  browser: Browser,
  url: string,
  {
    isPhone = false,
    isWide = false,
    theme = 'light',
    cookie,
  }: { isPhone?: boolean; isWide?: boolean; theme?: 'light' | 'dark'; cookie?: string } = {},
): Promise<Visit> {
  const context = await browser.newContext({
    viewport: SIZES[isPhone ? 'phone' : isWide ? 'wide' : 'desktop'],
    hasTouch: isPhone,
    colorScheme: theme,
    reducedMotion: 'reduce',
    permissions: ['clipboard-read', 'clipboard-write'],
  });
  const [name = '', value = ''] = cookie?.split('=') ?? [];
  if (cookie) await context.addCookies([{ name, value, url: new URL(url).origin }]);
  context.setDefaultTimeout(15_000);
  const page = await context.newPage();
  const problems: string[] = [];
  page.on('pageerror', (error) => problems.push(`script: ${error.stack ?? error.message}`));
  page.on('console', (message) => {
    // The browser logs each response of 400 and above, which pages show in words.
    if (message.type() === 'error' && !/^Failed to load resource/.test(message.text()))
      problems.push(`console: ${message.text()}`);
  });
  page.on('response', (response) => {
    if (response.status() >= 500) problems.push(`${response.status()} ${response.url()}`);
  });
  await page.goto(url);
  return {
    page,
    async close() {
      await context.close();
      assert.equal(problems, []);
    },
  };
}

const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

/**
 * Returns axe-core's violations of WCAG 2.2 AA and best practices, a line each with the elements.
 */
async function accessibilityMistakes(page: Page): Promise<string[]> {
  const source = readFileSync(axe, 'utf8');
  // The page's policy blocks inline scripts, so no script element is added.
  await page.evaluate(source);
  return page.evaluate(async () => {
    interface Result {
      readonly violations: readonly {
        readonly id: string;
        readonly help: string;
        readonly nodes: readonly {
          readonly target: readonly unknown[];
          readonly failureSummary?: string;
        }[];
      }[];
    }
    const { axe: checker } = globalThis as unknown as {
      axe: { run(options: object): Promise<Result> };
    };
    const { violations } = await checker.run({
      runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
      resultTypes: ['violations'],
    });
    return violations.map(
      ({ id, help, nodes }) =>
        `${id}: ${help}: ${nodes.map(({ target, failureSummary }) => `${target.join(' ')} (${failureSummary ?? ''})`).join('; ')}`,
    );
  });
}

/**
 * Asserts that the page is accessible and no wider than the window, after a screenshot if it has a
 * name.
 */
export async function inspect(page: Page, name?: string): Promise<void> {
  if (name !== undefined) await picture(page, name);
  assert.equal(await accessibilityMistakes(page), [], name);
  const wide = await page.evaluate<number>(
    'document.documentElement.scrollWidth - document.documentElement.clientWidth',
  );
  assert.ok(wide <= 0, `${name ?? page.url()} is ${wide} px too wide`);
}

/** Navigates within the dashboard, without a reload, and waits for the content. */
export async function show(page: Page, path: string): Promise<void> {
  await page.evaluate(
    `history.pushState(null, '', '${path}'); dispatchEvent(new PopStateEvent('popstate'))`,
  );
  await page.waitForLoadState('networkidle');
  await page.getByRole('heading', { level: 1 }).waitFor();
  await loaded(page);
}

export async function loaded(page: Page): Promise<void> {
  await until('the content', async () => (await page.locator('.loading').count()) === 0);
}

/** A section of the page, by its heading. */
export function panel(page: Page, name: string): Locator {
  return page.getByRole('region', { name, exact: true });
}

export async function press(page: Page, ...keys: readonly string[]): Promise<void> {
  for (const key of keys) await page.keyboard.press(key);
}

export async function push(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name, exact: true }).focus();
  await page.keyboard.press('Enter');
}

/** Blurs a field, so that letters are shortcuts again. */
export async function leaveField(page: Page): Promise<void> {
  await page.evaluate('document.activeElement.blur()');
}

/** Writes `.tests/pictures/<name>.png`. */
export async function picture(page: Page, name: string): Promise<void> {
  mkdirSync(pictures, { recursive: true });
  await page.screenshot({ path: path.join(pictures, `${name}.png`) });
}
