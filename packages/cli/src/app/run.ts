import { setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net';
import { parseArgs } from 'node:util';
import type { SettingsTable } from '@gateway/core/config';
import { namedCommand, rootHelp, versionLine } from './command-index.js';

/**
 * For clients that open their own connections, such as those of Postgres and Kafka, before the next
 * address of the name: a lost packet is repeated after a second. Node's default of 250 ms ends slow
 * handshakes.
 */
const ADDRESS_MS = 1_500;

/**
 * Results go to standard output, everything else to standard error.
 *
 * @param argv the arguments after node and the script
 * @param root the installation's folder, whose `package.json` lists the built-in plugins
 * @returns the exit status: 0 for success, 1 for a failure, 2 for a usage error, or another one set
 *   by the command
 */
export async function run({
  argv: typed,
  root,
}: {
  argv: readonly string[];
  root: string;
}): Promise<number> {
  ignoreClosedOutput();
  setDefaultAutoSelectFamilyAttemptTimeout(ADDRESS_MS);
  const [first, second] = typed;
  if (
    first === undefined ||
    first === '--version' ||
    (second === undefined && ['help', '--help', '-h'].includes(first))
  ) {
    process.stdout.write(
      first === '--version' ? `${versionLine()}\n` : rootHelp(process.stdout.columns),
    );
    return 0;
  }
  let argv = typed;
  let flags: string[] = [];
  try {
    await refusePlugNPlay();
    // Plugins are discovered before the command is parsed: their settings become flags, and the
    // configuration file can set a plugin folder.
    const file = flagValue(typed, 'config');
    const { useInstallation } = await import('./installation.js');
    const { rows } = useInstallation({ root, file: typeof file === 'string' ? file : undefined });
    const { commandFirst } = await import('./setting-flags.js');
    argv = commandFirst(typed, rows);
    await refuseWithdrawn(argv, rows);
    const { loadOclif, runOclif } = await import('./oclif.js');
    const config = await loadOclif(argv);
    flags = Object.keys(config.findCommand(namedCommand(argv).id)?.flags ?? {});
    await runOclif(argv, config);
    return 0;
  } catch (error) {
    const { code, oclif } = (error ?? {}) as { code?: unknown; oclif?: { exit?: number } };
    if (code === 'EEXIT') return oclif?.exit ?? 0;
    const [{ failureOf, printed }, { withoutSecrets }] = await Promise.all([
      import('./failure.js'),
      import('@gateway/core/errors'),
    ]);
    const failure = failureOf(error, {
      command: namedCommand(argv).id.replaceAll(':', ' '),
      flags,
    });
    process.stderr.write(printed(failure));
    if (argv.includes('--log-level=debug') && error instanceof Error)
      process.stderr.write(`${withoutSecrets(error.stack ?? '')}\n`);
    return failure.exitStatus;
  }
}

async function refusePlugNPlay(): Promise<void> {
  if (process.versions['pnp'] === undefined) return;
  const { GatewayError } = await import('@gateway/core/errors');
  throw new GatewayError('plug_n_play', {});
}

/** Before the command is known: true without a value, undefined if the flag was omitted. */
function flagValue(argv: readonly string[], name: string): string | boolean | undefined {
  const options = { [name]: { type: 'string' } } as const;
  const { values } = parseArgs({ args: [...argv], strict: false, allowPositionals: true, options });
  return values[name];
}

/** The replacements, as sentences. */
const withdrawnCommands: Readonly<Record<string, string>> = {
  worker: 'use `gateway agent`, the data plane',
  ingest: 'use `gateway agent`, the data plane',
  stream: 'use `gateway agent`, the data plane',
  scheduler: 'use `gateway agent`, the data plane, and `gateway server`, the control plane',
};

async function refuseWithdrawn(argv: readonly string[], rows: SettingsTable): Promise<void> {
  const { GatewayError } = await import('@gateway/core/errors');
  const [command = ''] = argv;
  if (Object.hasOwn(withdrawnCommands, command))
    throw new GatewayError('withdrawn', {
      form: `the command ${command}`,
      instead: withdrawnCommands[command]!,
    });
  for (const { flag, withdrawn } of Object.values(rows)) {
    if (!flag || withdrawn === undefined) continue;
    const value = flagValue(argv, flag);
    if (value === undefined) continue;
    throw new GatewayError('withdrawn', {
      form: typeof value === 'string' ? `--${flag}=${value}` : `--${flag}`,
      instead: withdrawn,
    });
  }
}

/** A reader such as `head` may close the pipe early (`EPIPE`). */
function ignoreClosedOutput(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
    });
  }
}
