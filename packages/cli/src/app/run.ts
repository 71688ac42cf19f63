import { parseArgs } from 'node:util';
import type { SettingsTable } from '@gateway/core/config';
import { namedCommand, rootHelp, versionLine } from './command-index.js';

/**
 * Runs the command line. Answers go to standard output, everything else to standard error.
 *
 * @param argv the arguments, without node and script
 * @param root folder of the installation, whose `package.json` names the built-in plugins
 * @returns the exit status: 0, 1 failed, 2 wrong use
 */
export async function run({
  argv: typed,
  root,
}: {
  argv: readonly string[];
  root: string;
}): Promise<number> {
  ignoreClosedOutput();
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
    // The file can name a plugin folder, and plugin settings become flags.
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

/** Returns a flag's value before its command is known; true without a value. */
function flagValue(argv: readonly string[], name: string): string | boolean | undefined {
  const options = { [name]: { type: 'string' } } as const;
  const { values } = parseArgs({ args: [...argv], strict: false, allowPositionals: true, options });
  return values[name];
}

/** Maps withdrawn commands to replacements. */
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

/** A reader that closes the pipe early, such as `head`, is not an error. */
function ignoreClosedOutput(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
    });
  }
}
