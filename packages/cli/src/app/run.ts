import type { Config } from '@oclif/core/config';
import { commandNames, namedCommand } from './command-index.js';
import { rootHelp, versionLine, wantsRootHelp } from './root-help.js';

/**
 * Runs the command line. Answers go to standard output, everything else to standard error.
 *
 * @param argv the arguments, without node and script
 * @param root folder of the installation, whose `package.json` names the built-in plugins
 * @returns the exit status: 0, 1 failed, 2 wrong use
 */
export async function run({ argv, root }: { argv: readonly string[]; root: string }): Promise<number> {
  allowClosedOutput();
  if (wantsRootHelp(argv)) {
    process.stdout.write(rootHelp(process.stdout.columns));
    return 0;
  }
  if (argv[0] === '--version') {
    process.stdout.write(`${versionLine()}\n`);
    return 0;
  }
  let config: Config | undefined;
  try {
    const [{ useInstallation }, { refuseWithdrawn }] = await Promise.all([import('./installation.js'), import('./withdrawn.js')]);
    const { rows } = useInstallation({ root, file: configFlag(argv) });
    refuseWithdrawn(argv, rows);
    const { loadOclif, runOclif } = await import('./oclif.js');
    config = await loadOclif(argv);
    await runOclif([...argv], config);
    return 0;
  } catch (error) {
    return failed(error, argv, config);
  }
}

async function failed(error: unknown, argv: readonly string[], config: Config | undefined): Promise<number> {
  const { code, oclif } = (error ?? {}) as { code?: unknown; oclif?: { exit?: number } };
  if (code === 'EEXIT') return oclif?.exit ?? 0;
  const { failureOf, printed } = await import('./failure.js');
  const { command, flags } = commandOf(argv, config);
  const failure = failureOf(error, { command, flags, commands: commandNames() });
  process.stderr.write(printed(failure));
  if (argv.includes('--log-level=debug') && error instanceof Error) process.stderr.write(`${error.stack ?? ''}\n`);
  return failure.exitStatus;
}

/** The value of `--config`, needed before the flags are parsed: its file may name a plugin folder, and plugins bring flags. */
function configFlag(argv: readonly string[]): string | undefined {
  const end = argv.includes('--') ? argv.indexOf('--') : argv.length;
  for (let i = 0; i < end; i++) {
    if (argv[i] === '--config') return argv[i + 1];
    if (argv[i]!.startsWith('--config=')) return argv[i]!.slice('--config='.length);
  }
  return undefined;
}

/** The command that was meant, as it is typed, with its flags. */
function commandOf(argv: readonly string[], config: Config | undefined): { command: string; flags: string[] } {
  const named = namedCommand(argv);
  return { command: named.replaceAll(':', ' '), flags: Object.keys(config?.findCommand(named)?.flags ?? {}) };
}

/** A reader that has seen enough, such as `head`, is nobody's failure. */
function allowClosedOutput(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
    });
  }
}
